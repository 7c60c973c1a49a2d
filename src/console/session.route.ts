import { getNetworkOfAddress } from "../shared/network.ts";
import * as z from "zod/mini";
import { fail } from "../shared/http/context.ts";
import type { AppContext } from "../shared/http/context.ts";
import { Isolate } from "../shared/http/isolate.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { readJson } from "../shared/http/read-json.ts";
import { readAnonymousBody } from "../shared/http/request-slots.ts";
import { verifyKey } from "../accounts/keys/api-key.ts";
import { now } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import {
  closeSession,
  requireSession,
  respondToSessionFailure,
  findActiveIdentity,
  openSession,
  findOwnSession,
} from "./own-session.route.ts";
import type { ConsoleIdentity } from "../shared/contracts/console-session.ts";
import type { Route } from "../shared/http/route.ts";
import { createExpiredSessionCookie, hasSessionCookie } from "./session-cookie.ts";
import { sessionView } from "./session-view.route.ts";
import { evictOldest } from "../shared/evict-oldest.ts";
import { sha256Hex } from "../shared/hash.ts";

const WINDOW_MS = 60_000;
const FAILURES_MAX = 20;
const ADDRESSES_MAX = 1000;

/**
 * Counts failed logins per IP address in this isolate. It only limits load, because keys can't be
 * guessed.
 */
class FailedLoginLimit {
  readonly #failures = new Map<string, { readonly sinceMs: number; readonly count: number }>();

  waitMs(address: string, nowMs: number): number {
    const known = this.#failures.get(address);
    if (known === undefined || known.count < FAILURES_MAX) return 0;
    return Math.max(0, known.sinceMs + WINDOW_MS - nowMs);
  }

  failed(address: string, nowMs: number): void {
    const known = this.#failures.get(address);
    const hasWindowEnded = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    this.#failures.delete(address);
    evictOldest(this.#failures, ADDRESSES_MAX);
    const next = hasWindowEnded
      ? { sinceMs: nowMs, count: 1 }
      : { ...known, count: known.count + 1 };
    this.#failures.set(address, next);
  }
}

const KEY_CHARACTERS_MAX = 512;
export const LOGIN_BODY_LIMITS = { bytesMax: 2 * 1024, timeoutMs: 5000 };

const loginSchema = z.object({ key: z.string().check(z.maxLength(KEY_CHARACTERS_MAX)) });

/**
 * Handles POST /console/api/login { key }. Exchanges an active key of this region, or an operator
 * token, for a session cookie. Returns 400 for another region's key.
 */
export async function loginRoute(c: AppContext, rows: readonly Route[]): Promise<Response> {
  const body = await readAnonymousBody(c, readJson, LOGIN_BODY_LIMITS);
  const fields = body.ok ? parseFields(loginSchema, [], body.value) : body;
  const result = fields.ok
    ? await limitFailedLogins(c, () => logIn(c, rows, fields.value.key.trim()))
    : fields;
  if (!result.ok) return fail(c, result.failure);
  c.header("set-cookie", result.value.cookie);
  return c.json(result.value.view);
}

type Login = Result<{ readonly view: object; readonly cookie: string }>;

/** Calls `attempt`, unless the client's network had too many failed logins. */
export async function limitFailedLogins<T>(
  c: AppContext,
  attempt: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const failedLogins = Isolate.of(c.var.config).get(createFailedLoginLimit);
  const address = getNetworkOfAddress(c.req.header("cf-connecting-ip") ?? "");
  const nowMs = now(c.env);
  const retryAfterMs = failedLogins.waitMs(address, nowMs);
  if (retryAfterMs > 0) {
    const limit = FAILURES_MAX;
    return refuse({ kind: "rate_limited", scope: "login", limit, retryAfterMs });
  }
  const result = await attempt();
  const isForged =
    !result.ok &&
    (result.failure.kind === "invalid_api_key" || result.failure.kind === "login_refused");
  if (isForged) failedLogins.failed(address, nowMs);
  return result;
}

const createFailedLoginLimit = (): FailedLoginLimit => new FailedLoginLimit();

async function logIn(c: AppContext, rows: readonly Route[], text: string): Promise<Login> {
  const found = await identityOf(c, text);
  if (!found.ok) return found;
  const live = await findActiveIdentity(c, found.value);
  if (!live.ok) return live;
  const opened = await openSession(c, found.value);
  if (!opened.ok) return opened;
  const { cookie, expiresAt } = opened.value;
  const view = await sessionView(c, rows, { identity: live.value, expiresAt });
  if (view.ok) return success({ view: view.value, cookie });
  c.executionCtx.waitUntil(closeSession(c, opened.value));
  return view;
}

/**
 * Handles GET /console/api/session. Returns 401 for an ended session. Returns 204 without a cookie,
 * because opening the page is no error.
 */
export async function sessionRoute(c: AppContext, rows: readonly Route[]): Promise<Response> {
  if (!hasSessionCookie(c.var.config.region, c.req.header("cookie"))) return c.body(null, 204);
  const entered = await requireSession(c, true);
  if (!entered.ok) return respondToSessionFailure(c, entered.failure);
  const view = await sessionView(c, rows, entered.value);
  return view.ok ? c.json(view.value) : respondToSessionFailure(c, view.failure);
}

export async function logoutRoute(c: AppContext): Promise<Response> {
  const session = await findOwnSession(c);
  if (session !== null) {
    const ended = await closeSession(c, session);
    if (!ended.ok) return fail(c, ended.failure);
  }
  c.header("set-cookie", createExpiredSessionCookie(c.var.config.region));
  return c.body(null, 204);
}

async function identityOf(c: AppContext, text: string): Promise<Result<ConsoleIdentity>> {
  const { keySecrets, peers, region } = c.var.config;
  const key = await verifyKey(text, keySecrets);
  if (key === null) return success({ kind: "operator", tokenHash: await sha256Hex(text) });
  const { home } = key;
  if (home === region) return success({ kind: "key", key });
  const url = peers.find((peer) => peer.region === home)?.url;
  const where = url === undefined ? "" : `: ${url}/console`;
  return invalid(
    `This key's home region is '${home}'. Log in at that region's console${where}.`,
    "key",
  );
}
