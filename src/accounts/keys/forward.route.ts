import type { Next } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { MANAGEMENT_BYTES_MAX, readBodyBytes } from "../../shared/http/read-json.ts";
import { readBodyInMemorySlot } from "../../shared/http/request-slots.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import type { Caller } from "../../shared/caller.ts";
import { elapsedMs, now } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { withTimeout } from "../../shared/timers.ts";
import { peerOutboxNamesOfOrganization } from "../../regions/outbox-schedule.ts";
import { homeCallBudgetMs, callPeer } from "../../regions/peer-call.ts";
import {
  forwardedRequestToJson,
  parseForwardedResponse,
  forwardedRequestHeaders,
} from "./forward-format.ts";

const FLUSH_TIMEOUT_MS = 1000;

/**
 * Middleware that forwards a global key's request to its home region. Delivers pending charges
 * first. Sends a write only once. Returns 503 if the response is lost.
 */
export async function forwardToHome(c: AppContext, next: Next): Promise<Response | undefined> {
  const { caller } = c.var.admitted;
  if (caller.home === c.var.config.region) {
    await next();
    return undefined;
  }
  const isRead = c.req.method === "GET" || c.req.method === "HEAD";
  const body = isRead ? success(null) : await readForwardedBody(c);
  if (!body.ok) return fail(c, body.failure);
  const startedMs = elapsedMs();
  await flushOutboxes(c, caller);
  const home = c.var.config.peers.find((peer) => peer.region === caller.home);
  const url = new URL(c.req.url);
  const answer =
    home === undefined
      ? null
      : await callPeer(
          home,
          "forward",
          forwardedRequestToJson({
            method: c.req.method,
            path: url.pathname,
            query: url.search,
            headers: forwardedRequestHeaders(c.req.raw.headers),
            body: body.value,
            credential: createRequestCredential(caller.keyHash, caller.shown),
          }),
          {
            requestId: c.var.requestId,
            now: () => now(c.env),
            budgetMs: homeCallBudgetMs(c.var.admissionMs + elapsedMs() - startedMs),
            attempts: isRead ? 2 : 1,
          },
        );
  const forwardedResponse = answer === null ? null : parseForwardedResponse(answer.body);
  if (forwardedResponse === null) return fail(c, { kind: "home_region_unreachable" });
  const { status, headers } = forwardedResponse;
  if (status >= 400) c.set("failure", `home_${status}`);
  return new Response(forwardedResponse.body === "" ? null : forwardedResponse.body, {
    status,
    headers,
  });
}

async function readForwardedBody(c: AppContext): Promise<Result<string | null>> {
  if (c.req.raw.body === null) return success(null);
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const limits = { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs };
  const bytes = await readBodyInMemorySlot(c, readBodyBytes, limits);
  if ("shed" in bytes) return refuse({ kind: "overloaded" });
  return bytes.ok ? success(bytes.value.toBase64()) : bytes;
}

async function flushOutboxes(c: AppContext, caller: Caller): Promise<void> {
  const { outbox } = objectsOf(c.env);
  const flushed = peerOutboxNamesOfOrganization(caller.home, caller.orgId).map((name) =>
    outbox(name).flush(FLUSH_TIMEOUT_MS, caller.orgId),
  );
  await withTimeout(Promise.allSettled(flushed), FLUSH_TIMEOUT_MS).catch(() => undefined);
}
