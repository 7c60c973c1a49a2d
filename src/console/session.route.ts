import type { Context, Next } from "hono";
import * as z from "zod/mini";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { Isolate } from "../http/isolate.ts";
import { parseFields } from "../http/parse-body.ts";
import { readJson } from "../http/read-json.ts";
import { verifyKey } from "../keys/api-key.ts";
import { askBook } from "../lib/ask-book.ts";
import { secretOf } from "../lib/caller.ts";
import { now, timestamp } from "../lib/clock.ts";
import { invalid, refuse, success } from "../lib/failure.ts";
import type { Failure, Result } from "../lib/failure.ts";
import { consoleAccount } from "../lib/console-account.ts";
import { objectsOf } from "../contracts/objects.ts";
import { isLimited } from "../lib/key-terms.ts";
import { readObject } from "../lib/reach-object.ts";
import type { Key } from "../lib/key.ts";
import { operatorHashed, sha256Hex } from "../operator/operator-token.ts";
import { LOGIN_FAILURES_MAX, LoginPace } from "./login-pace.ts";
import type {
  ConsoleIdentity,
  ConsoleSessionCalls,
  Entered,
} from "../contracts/console-session.ts";
import { ENDED_COOKIE, hasSessionCookie, mintCookie, sessionOf } from "./session-cookie.ts";
import type { SessionPlace } from "./session-cookie.ts";
import { findViewer } from "./viewer.store.ts";

type AppContext = Context<AppEnv>;

const SESSION_S = 12 * 60 * 60;
const KEY_CHARACTERS_MAX = 512;
/** Anybody may send one: a key or a token, and nothing that is worth a place of its own. */
const LOGIN_LIMITS = { bytesMax: 2 * 1024, timeoutMs: 5000 };

/** Who a live session is: an operator, or what the register says of its key. */
export type LiveIdentity =
  | { readonly kind: "operator"; readonly name: string }
  | { readonly kind: "key"; readonly key: KeyOf; readonly known: Key };
type KeyOf = Extract<ConsoleIdentity, { readonly kind: "key" }>["key"];
/** A session that may call, and who calls. */
export type LiveSession = Omit<Entered, "identity"> & { readonly identity: LiveIdentity };

/**
 * Lets only this console's own page pass: a browser says where a request comes from, and another site's, or one
 * without `Origin` that is more than a GET, is 403 before the cookie is looked at.
 */
export async function requireOwnPage(c: AppContext, next: Next): Promise<Response | undefined> {
  const site = c.req.header("sec-fetch-site") ?? "same-origin";
  const origin = c.req.header("origin");
  const isOwn = origin === new URL(c.req.url).origin;
  const isRead = c.req.method === "GET" && origin === undefined;
  if ((site !== "same-origin" && site !== "none") || !(isOwn || isRead)) {
    return fail(c, { kind: "origin_not_allowed" });
  }
  await next();
  return undefined;
}

const loginSchema = z.object({ key: z.string().check(z.maxLength(KEY_CHARACTERS_MAX)) });

/**
 * POST /console/api/login { key }: exchanges a live key of this home, or an operator's token, for a session of
 * 12 hours in a cookie. 401 for anything else, 400 for a key of another home, 429 for too many tries. What
 * was forged is found out without I/O.
 */
export async function loginRoute(c: AppContext): Promise<Response> {
  const body = await readJson(c.req.raw, LOGIN_LIMITS);
  const fields = body.ok ? parseFields(loginSchema, [], body.value) : body;
  const made = fields.ok ? await pacedLogin(c, fields.value.key.trim()) : fields;
  if (!made.ok) return fail(c, made.failure);
  const before = await ownSession(c);
  if (before !== null) c.executionCtx.waitUntil(closed(c, before));
  c.header("set-cookie", made.value.cookie);
  return c.json(made.value.view);
}

type Login = Result<{ readonly view: object; readonly cookie: string }>;

/** As `logIn`, for an address that has not failed too often of late. */
async function pacedLogin(c: AppContext, text: string): Promise<Login> {
  const pace = Isolate.of(c.var.config).get(makePace);
  const address = c.req.header("cf-connecting-ip") ?? "";
  const nowMs = now(c.env);
  const retryAfterMs = pace.waitMs(address, nowMs);
  if (retryAfterMs > 0) {
    return refuse({
      kind: "rate_limited",
      scope: "login",
      limit: LOGIN_FAILURES_MAX,
      retryAfterMs,
    });
  }
  const made = await logIn(c, text);
  if (!made.ok && made.failure.kind === "invalid_api_key") pace.failed(address, nowMs);
  return made;
}

const makePace = (): LoginPace => new LoginPace();

/** A session for who holds this text, counted as a login: its JSON and its cookie. */
async function logIn(c: AppContext, text: string): Promise<Login> {
  const found = await identityOf(c, text);
  if (!found.ok) return found;
  const stored = found.value;
  const live = await liveIdentity(c, stored);
  if (!live.ok) return live;
  const name = stored.kind === "key" ? stored.key.hash : stored.tokenHash;
  const expiresAt = now(c.env) + SESSION_S * 1000;
  const cookie = await mintCookie(c.var.config.keySecrets, consoleAccount(name), SESSION_S);
  const opened = await askSessions(c, cookie, (own) => own.open(cookie.session, stored, expiresAt));
  if (!opened.ok) return opened;
  const view = await sessionView(c, live.value, expiresAt);
  if (view.ok) return success({ view: view.value, cookie: cookie.header });
  c.executionCtx.waitUntil(closed(c, cookie));
  return view;
}

/**
 * GET /console/api/session: who is logged in, until when. 204 for a browser that has no cookie of ours: to open the
 * page is no error. 401 for one whose session is over.
 */
export async function sessionRoute(c: AppContext): Promise<Response> {
  if (!hasSessionCookie(c.req.header("cookie"))) return c.body(null, 204);
  const entered = await enterSession(c, true);
  if (!entered.ok) return failSession(c, entered.failure);
  const { identity, expiresAt } = entered.value;
  const view = await sessionView(c, identity, expiresAt);
  return view.ok ? c.json(view.value) : failSession(c, view.failure);
}

/** POST /console/api/logout: 204, with or without a session. */
export async function logoutRoute(c: AppContext): Promise<Response> {
  const session = await ownSession(c);
  if (session !== null) {
    const ended = await closed(c, session);
    if (!ended.ok) return fail(c, ended.failure);
  }
  c.header("set-cookie", ENDED_COOKIE);
  return c.body(null, 204);
}

/**
 * The session of a request's cookie while its key or operator lives, which is asked at every call. A session whose key
 * has ended is over: 401, like one that never was.
 */
export async function enterSession(
  c: AppContext,
  isCounted: boolean,
): Promise<Result<LiveSession>> {
  const session = await ownSession(c);
  if (session === null) return refuse({ kind: "no_console_session" });
  const entered = await askSessions(c, session, (own) => own.enter(session.session, isCounted));
  if (!entered.ok) return entered;
  const live = await liveIdentity(c, entered.value.identity);
  if (live.ok) return success({ ...entered.value, identity: live.value });
  if (live.failure.kind !== "invalid_api_key") return live;
  c.executionCtx.waitUntil(closed(c, session));
  return refuse({ kind: "no_console_session" });
}

/** As `fail`; a session that is over takes its cookie with it. */
export function failSession(c: AppContext, failure: Failure): Response {
  const response = fail(c, failure);
  if (failure.kind === "no_console_session") response.headers.set("set-cookie", ENDED_COOKIE);
  return response;
}

/** Whose text it may be, found out without I/O. */
async function identityOf(c: AppContext, text: string): Promise<Result<ConsoleIdentity>> {
  const { keySecrets, peers, region } = c.var.config;
  const key = await verifyKey(text, keySecrets);
  if (key === null) return success({ kind: "operator", tokenHash: await sha256Hex(text) });
  const { home } = key;
  if (home === region) return success({ kind: "key", key });
  const url = peers.find((peer) => peer.region === home)?.url;
  const where = url === undefined ? "" : `: ${url}/console`;
  return invalid(
    `The home of this key is '${home}': log in at that region's console${where}.`,
    "key",
  );
}

/** `invalid_api_key` when the key or the operator has ended, or never was. */
async function liveIdentity(
  c: AppContext,
  identity: ConsoleIdentity,
): Promise<Result<LiveIdentity>> {
  const { operators } = c.var.config;
  if (identity.kind === "operator") {
    const name = await operatorHashed(identity.tokenHash, operators);
    return name === null
      ? refuse({ kind: "invalid_api_key" })
      : success({ kind: "operator", name });
  }
  const { key } = identity;
  const known = await readObject(() =>
    objectsOf(c.env).register(key.hash).whose(secretOf(key.hash, key.shown)),
  );
  return known.ok ? success({ kind: "key", key, known: known.value }) : known;
}

/** Where the session of this request's cookie is kept, or null. */
function ownSession(c: AppContext): Promise<SessionPlace | null> {
  return sessionOf(c.req.header("cookie"), c.var.config.keySecrets);
}

function closed(c: AppContext, place: SessionPlace): Promise<Result<null>> {
  return askSessions(c, place, (own) => own.close(place.session));
}

function askSessions<T>(
  c: AppContext,
  { account }: SessionPlace,
  call: (sessions: ConsoleSessionCalls) => Promise<Result<T>>,
): Promise<Result<T>> {
  return readObject(() => call(objectsOf(c.env).consoles(account)));
}

/** The JSON of a session: what the console's first page needs to know. */
async function sessionView(
  c: AppContext,
  identity: LiveIdentity,
  expiresAt: number,
): Promise<Result<object>> {
  const common = { region: c.var.config.region, expires_at: timestamp(expiresAt) };
  if (identity.kind === "operator") {
    const nobody = { organization: null, key: null, member: null };
    return success({ kind: "operator", role: "operator", ...nobody, ...common });
  }
  const { keyId, orgId, terms } = identity.known;
  const fields = { key_id: keyId, org_id: orgId };
  const viewer = await askBook(() => findViewer(c.env.DB, keyId), "viewer_unreadable", fields);
  if (!viewer.ok) return viewer;
  if (viewer.value === null) return refuse({ kind: "invalid_api_key" });
  const { key, member } = viewer.value;
  const limited = isLimited(terms);
  return success({
    kind: "key",
    role: member.role,
    ...viewer.value,
    key: { ...key, limited },
    ...common,
  });
}
