import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../shared/http/context.ts";
import type { AppEnv } from "../shared/http/context.ts";
import { Isolate } from "../shared/http/isolate.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { readJson } from "../shared/http/read-json.ts";
import { readAnonymous } from "../shared/http/request-slots.ts";
import { verifyKey } from "../accounts/keys/api-key.ts";
import { now } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import {
  closeSession,
  enterSession,
  failSession,
  findActiveIdentity,
  openSession,
  findOwnSession,
} from "./own-session.route.ts";
import type { ConsoleIdentity } from "../shared/contracts/console-session.ts";
import type { RightsRow } from "./allowed-calls.ts";
import { expiredCookie, hasSessionCookie } from "./session-cookie.ts";
import { sessionView } from "./session-view.route.ts";
import { evictOldest } from "../shared/evict-oldest.ts";
import { sha256Hex } from "../shared/hash.ts";

const WINDOW_MS = 60_000;
const FAILURES_MAX = 20;
const ADDRESSES_MAX = 1000;

/**
 * How often logins from an address have failed at this isolate. What was forged costs no I/O, so that counting it
 * here is enough: it bounds the work of guessing, which is hopeless anyway.
 */
class LoginPace {
  readonly #failures = new Map<string, { readonly sinceMs: number; readonly count: number }>();

  /** How long an address must wait before it may try again; 0 for not at all. */
  waitMs(address: string, nowMs: number): number {
    const known = this.#failures.get(address);
    if (known === undefined || known.count < FAILURES_MAX) return 0;
    return Math.max(0, known.sinceMs + WINDOW_MS - nowMs);
  }

  /** Counts a failure; of too many addresses the oldest is forgotten. */
  failed(address: string, nowMs: number): void {
    const known = this.#failures.get(address);
    const isOver = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    this.#failures.delete(address);
    evictOldest(this.#failures, ADDRESSES_MAX);
    const next = isOver ? { sinceMs: nowMs, count: 1 } : { ...known, count: known.count + 1 };
    this.#failures.set(address, next);
  }
}

type AppContext = Context<AppEnv>;

const KEY_CHARACTERS_MAX = 512;
/** Anybody may send one: a key or a token, and nothing that is worth a place of its own. */
export const LOGIN_LIMITS = { bytesMax: 2 * 1024, timeoutMs: 5000 };

const loginSchema = z.object({ key: z.string().check(z.maxLength(KEY_CHARACTERS_MAX)) });

/**
 * POST /console/api/login { key }: exchanges a live key of this home, or an operator's token, for a session of
 * 12 hours in a cookie. 401 for anything else, 400 for a key of another home, 429 for too many tries. What
 * was forged is found out without I/O.
 */
export async function loginRoute(c: AppContext, rows: readonly RightsRow[]): Promise<Response> {
  const body = await readAnonymous(c, readJson, LOGIN_LIMITS);
  const fields = body.ok ? parseFields(loginSchema, [], body.value) : body;
  const made = fields.ok
    ? await limitFailedLogins(c, () => logIn(c, rows, fields.value.key.trim()))
    : fields;
  if (!made.ok) return fail(c, made.failure);
  c.header("set-cookie", made.value.cookie);
  return c.json(made.value.view);
}

type Login = Result<{ readonly view: object; readonly cookie: string }>;

/** What an address asks that has not failed too often of late: a forged key, or what is no log-in of an issuer. */
export async function limitFailedLogins<T>(
  c: AppContext,
  ask: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const pace = Isolate.of(c.var.config).get(makePace);
  const address = c.req.header("cf-connecting-ip") ?? "";
  const nowMs = now(c.env);
  const retryAfterMs = pace.waitMs(address, nowMs);
  if (retryAfterMs > 0) {
    const limit = FAILURES_MAX;
    return refuse({ kind: "rate_limited", scope: "login", limit, retryAfterMs });
  }
  const made = await ask();
  const isForged =
    !made.ok && (made.failure.kind === "invalid_api_key" || made.failure.kind === "login_refused");
  if (isForged) pace.failed(address, nowMs);
  return made;
}

const makePace = (): LoginPace => new LoginPace();

/** A session for who holds this text, counted as a login: its JSON and its cookie. */
async function logIn(c: AppContext, rows: readonly RightsRow[], text: string): Promise<Login> {
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
 * GET /console/api/session: who is logged in, until when, and what of `rows` and more it may ask. 204 for a browser that has no cookie of ours: to open the
 * page is no error. 401 for one whose session is over.
 */
export async function sessionRoute(c: AppContext, rows: readonly RightsRow[]): Promise<Response> {
  if (!hasSessionCookie(c.var.config.region, c.req.header("cookie"))) return c.body(null, 204);
  const entered = await enterSession(c, true);
  if (!entered.ok) return failSession(c, entered.failure);
  const view = await sessionView(c, rows, entered.value);
  return view.ok ? c.json(view.value) : failSession(c, view.failure);
}

/** POST /console/api/logout: 204, with or without a session. */
export async function logoutRoute(c: AppContext): Promise<Response> {
  const session = await findOwnSession(c);
  if (session !== null) {
    const ended = await closeSession(c, session);
    if (!ended.ok) return fail(c, ended.failure);
  }
  c.header("set-cookie", expiredCookie(c.var.config.region));
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
