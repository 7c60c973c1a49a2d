import { fail } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { failureResponse } from "../../shared/http/failure-response.ts";
import { internalRequestIds } from "../../shared/http/internal-request-id.ts";
import { routingPath } from "../../shared/http/routing-path.ts";
import type { AdmittedRequest, RequestCredential } from "../../shared/caller.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import type { Key } from "../../shared/key.ts";
import { callObject } from "../../shared/reach-object.ts";
import { forwardedResponseHeaders, parseForwardedRequest } from "./forward-format.ts";
import type { ForwardedRequest } from "./forward-format.ts";
import { internalCallers, toAdmittedRequest, identifyGlobalKey } from "./internal-caller.ts";

type Dispatch = (
  request: Request,
  env: Env,
  context: ExecutionContext,
) => Promise<Response> | Response;

type HomeApi = {
  readonly dispatch: Dispatch;
  readonly isHandledAtHome: (routedPath: string) => boolean;
};

/**
 * Handles POST /internal/v1/forward at home. Takes no memory slot. Returns 409 for a write that the
 * network duplicated within a minute.
 */
export async function handlePeerForward(c: AppContext, surface: HomeApi): Promise<Response> {
  const forwarded = parseForwardedRequest(c.var.peerBody);
  const request = forwarded === null ? null : buildForwardedRequest(c, forwarded, surface);
  if (forwarded === null || request === null) {
    return c.json({ ok: false, failure: { kind: "internal" } });
  }
  const isRead = forwarded.method === "GET" || forwarded.method === "HEAD";
  const { config, requestId } = c.var;
  const { credential: called } = forwarded;
  const identified = await identifyGlobalKey(
    objectsOf(c.env).register,
    called,
    isRead ? null : requestId,
  );
  const key = identified.ok ? await requireActiveKey(c, identified.value, called) : identified;
  if (!key.ok && key.failure.kind === "conflict") return fail(c, key.failure);
  const response = key.ok
    ? await dispatchAs(c, request, {
        admitted: toAdmittedRequest(key.value, called, config.region),
        dispatch: surface.dispatch,
      })
    : failureResponse(key.failure, requestId);
  return c.json({
    ok: true,
    status: response.status,
    headers: forwardedResponseHeaders(response.headers),
    body: await response.text(),
  });
}

/**
 * Returns the key if its wallet accepts requests. Only the wallet rejects closed organizations and
 * ended sessions. Counts a session's request toward the session's limit.
 */
async function requireActiveKey(
  c: AppContext,
  key: Key,
  { keyHash, shown }: RequestCredential,
): Promise<Result<Key>> {
  const isSession = shown?.session !== undefined;
  const status = await callObject(
    () => objectsOf(c.env).wallet(key.orgId).keyStanding(keyHash, shown, false, isSession),
    { attemptsMax: 2, after: c.var.timers.after },
  );
  return status.ok ? success(key) : status;
}

/**
 * Returns the request to run, or null if its path can't be forwarded or normalizes to another path
 * (`/v1/../admin/v1`).
 */
function buildForwardedRequest(
  c: AppContext,
  forwarded: ForwardedRequest,
  { isHandledAtHome }: HomeApi,
): Request | null {
  const { path, query } = forwarded;
  const url = new URL(new URL(c.req.url).origin + path + query);
  if (url.pathname !== path) return null;
  const request = buildRequest(url, forwarded);
  const routedPath = request === null ? "" : routingPath(request);
  return isHandledAtHome(routedPath) ? request : null;
}

function buildRequest(url: URL, { method, headers, body }: ForwardedRequest): Request | null {
  try {
    const bytes = body === null ? null : { body: Uint8Array.fromBase64(body) };
    return new Request(url, { method, headers, ...bytes });
  } catch {
    return null;
  }
}

function dispatchAs(
  c: AppContext,
  request: Request,
  { admitted, dispatch }: { admitted: AdmittedRequest; dispatch: Dispatch },
): Promise<Response> | Response {
  internalCallers.set(request, { admitted });
  internalRequestIds.set(request, c.var.requestId);
  return dispatch(request, c.env, c.executionCtx as ExecutionContext);
}
