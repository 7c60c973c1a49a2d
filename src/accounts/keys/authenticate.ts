import type { KeySecret } from "../../shared/config/config.ts";
import { assert } from "../../shared/assert.ts";
import { secretOf } from "../../shared/caller.ts";
import type { Admitted, Caller, PresentedSecret, VerifiedKey } from "../../shared/caller.ts";
import type { RateState } from "../../shared/key-terms.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import type { Key } from "../../shared/key.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { mayRetry, storageFailure } from "../../shared/storage-failure.ts";
import type { After } from "../../shared/timers.ts";
import { within } from "../../shared/timers.ts";
import { verifyKey } from "./api-key.ts";
import { SESSION_TOKEN, verifySession, SESSION_TOKEN_MAX } from "./session-token.ts";
import type { CallsOf } from "../../shared/contracts/objects.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import type { Region } from "../../shared/regions.ts";

/** Who reads a key from a slow book may take this long; then it is our fault, 503. */
const REGISTER_TIMEOUT_MS = 6000;

/** What a request's key is verified by. */
export type Verification = {
  /** The `Authorization` header as it came, or null. */
  readonly authorization: string | null;
  /** `x-api-key` likewise. */
  readonly apiKey?: string | null;
  readonly keySecrets: readonly KeySecret[];
  /** The region that was called. */
  readonly region: Region;
  /** The header `Origin`, or null; asked for of sessions alone. */
  readonly origin?: () => string | null;
  /** Unix ms: a session that is over costs nobody a call. */
  readonly now?: number;
};

/** A session that is over for longer is refused where it was sent: whether one just ends, its home's clock says. */
const SESSION_SPARE_MS = 60_000;

/** Who admits a verified key. */
export type KeyAdmitter = CallsOf<"register", "whose" | "admit"> &
  CallsOf<"wallet", "admit"> & {
    /** The region that was called. */
    readonly region: Region;
    readonly callers: KnownCallers;
    /** The request's timers. */
    readonly after?: After;
  };

/**
 * What can be said of a request's key without any I/O: shape and tag (`invalid_api_key`), then whether it
 * is a regional key of the other region (`region_mismatch`); of a session also whether it is over, and comes
 * from a page that may send it (`origin_not_allowed`).
 */
export async function verifyRequest(request: Verification): Promise<Result<VerifiedKey>> {
  const { token, twoHeaders } = readCredential(request.authorization, request.apiKey ?? null);
  const key = token === null ? null : await verified(token, request.keySecrets);
  if (key === null) return refuse({ kind: "invalid_api_key", ...(twoHeaders && { twoHeaders }) });
  const ofSession = refuseSession(key, request);
  if (ofSession !== null) return ofSession;
  if (key.home !== request.region && key.scope === "regional") {
    return refuse({ kind: "region_mismatch", home: key.home });
  }
  return success(key);
}

function refuseSession({ shown }: VerifiedKey, { now = 0, origin }: Verification): Refusal | null {
  if (shown?.session === undefined) return null;
  const { expiresAt, origins } = shown.session;
  if (expiresAt + SESSION_SPARE_MS <= now) {
    return refuse({ kind: "invalid_api_key", expiredAt: expiresAt });
  }
  const isFromElsewhere = origins !== null && !origins.includes(origin?.() ?? "");
  return isFromElsewhere ? refuse({ kind: "origin_not_allowed" }) : null;
}

function verified(token: string, secrets: readonly KeySecret[]): Promise<VerifiedKey | null> {
  return token.startsWith(SESSION_TOKEN)
    ? verifySession(token, secrets)
    : verifyKey(token, secrets);
}

/**
 * Who calls and what is left of the key's minute: the verdict of its organization's wallet at home; at a
 * peer that of the key's register here, which asks the key's home who a global key is, once. What cannot
 * answer is `overloaded` or `storage_unavailable`: never a 401, never an admission.
 */
export async function admitKey(
  key: VerifiedKey,
  admitting: KeyAdmitter,
): Promise<Result<Admitted>> {
  const { callers, region, after } = admitting;
  if (callers.isDead(key)) return refuse({ kind: "invalid_api_key" });
  const asked = key.home === region ? admitAtHome : admitAtPeer;
  try {
    const admission = await within(asked(key, admitting), REGISTER_TIMEOUT_MS, after);
    if (!admission.ok) callers.refused(key, admission.failure);
    return admission;
  } catch (error) {
    logWarning("admission_unreachable", { reason: reasonOf(error) });
    return refuse(storageFailure(error));
  }
}

async function admitAtHome(
  key: VerifiedKey,
  { register, wallet, callers }: KeyAdmitter,
): Promise<Result<Admitted>> {
  let caller = callers.get(key);
  if (caller === undefined) {
    const secret = secretOf(key.hash, key.shown);
    const said = await onceMore(() => register(key.hash).whose(secret));
    if (!said.ok) return said;
    caller = callers.learn(key, said.value);
  }
  const { orgId, shown } = caller;
  const admission = await onceMore(() => wallet(orgId).admit(key.hash, shown));
  return admission.ok ? success(admittedFor(caller, admission.value)) : admission;
}

async function admitAtPeer(key: VerifiedKey, { register }: KeyAdmitter): Promise<Result<Admitted>> {
  const { hash: keyHash, home, shown } = key;
  const secret = secretOf(keyHash, shown);
  const paced = shown?.session && { id: shown.session.id, rpmLimit: shown.session.rpmLimit };
  const admission = await onceMore(() => register(keyHash).admit(home, secret, paced));
  if (!admission.ok) return refuse(admission.failure);
  const { keyId, orgId, memberId, scope } = admission;
  const caller = { keyId, keyHash, orgId, memberId, scope, home, ...(shown && { shown }) };
  return success(admittedFor(caller, admission));
}

/** One retry, on a fresh stub. A lost answer may have taken a place in the window: never one too many. */
async function onceMore<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!mayRetry(error)) throw error;
    return await call();
  }
}

/** The caller, with what its admission says is left of its key's minute. */
function admittedFor(
  caller: Caller,
  {
    limit,
    remaining,
    resetMs,
    isLimited,
    priceList,
  }: RateState & Pick<Admitted, "isLimited" | "priceList">,
): Admitted {
  const rate = { limit, remaining, resetMs };
  return {
    caller,
    rate,
    ...(isLimited === true && { isLimited }),
    ...(priceList !== undefined && { priceList }),
  };
}

const HEADER_CHARACTERS_MAX = 128;

/**
 * The token of `Authorization: Bearer <token>`, or null. The scheme may be in any case (RFC 9110,
 * 11.1), exactly one space follows. Two headers arrive joined by a comma, so a comma is refused:
 * which of them counts must not depend on who reads.
 */
export function bearerToken(authorization: string | null): string | null {
  if (authorization === null || authorization.length > SESSION_TOKEN_MAX + SCHEME) return null;
  const token = /^bearer ([^\s,]+)$/i.exec(authorization)?.[1] ?? null;
  return token !== null && authorization.length > HEADER_CHARACTERS_MAX && !isSession(token)
    ? null
    : token;
}

const SCHEME = "bearer ".length;

/** Only a session's token is so long: its terms stand in it. */
function isSession(token: string): boolean {
  return token.startsWith(SESSION_TOKEN);
}

/** Begins every credential of ours. */
const OURS = "svc_";

/**
 * The credential of a request: `Authorization: Bearer`, or `x-api-key` as clients of the Messages dialect send
 * it. An empty `x-api-key` is none. Of two that differ, the one of ours counts; two of ours that differ
 * are none: which of them counts must not depend on who reads.
 */
export function readCredential(authorization: string | null, apiKey: string | null): Credential {
  const bearer = bearerToken(authorization);
  const key = apiKey?.trim() ?? "";
  if (key === "" || key === bearer) return { token: bearer };
  const longest = isSession(key) ? SESSION_TOKEN_MAX : HEADER_CHARACTERS_MAX;
  const isKeyOurs = key.startsWith(OURS) && key.length <= longest;
  if (bearer === null) return { token: isKeyOurs ? key : null };
  if (!bearer.startsWith(OURS)) {
    return isKeyOurs
      ? { token: key, twoHeaders: "x-api-key" }
      : { token: bearer, twoHeaders: "authorization" };
  }
  return key.startsWith(OURS)
    ? { token: null, twoHeaders: "both" }
    : { token: bearer, twoHeaders: "authorization" };
}

/** What a request is verified by; `twoHeaders`: of two, as a refusal names it. */
type Credential = {
  readonly token: string | null;
  readonly twoHeaders?: Extract<Failure, { kind: "invalid_api_key" }>["twoHeaders"];
};

const KEYS_MAX = 10_000;
/**
 * A register notes one use a minute: it hears of those that come by a peer, which no wallet notes, this often. So
 * the last of them may be noted as this much earlier than it was.
 */
const HEARD_MS = 15_000;

type KeyName = { readonly hash: string; readonly shown?: PresentedSecret | undefined };
type Learned = KeyName & Pick<VerifiedKey, "home">;

/**
 * Whose each key of this home is, as its register said once: that never changes, so an isolate remembers
 * it, for each secret, and knows which wallet to ask. It says nothing of whether a key, a secret or a session
 * lives; but that one has ended for good is remembered, and costs nobody a call.
 */
export class KnownCallers {
  readonly #callers = new Map<string, Omit<Caller, "shown">>();
  readonly #ended = new Set<string>();
  /** Whose those were that have died since, for the errors that they are still answered with. */
  readonly #died = new Map<string, Omit<Caller, "shown">>();
  /** Secrets and sessions that can never live again. */
  readonly #dead = new Set<string>();
  /** When a key's register heard last of a use by a peer, Unix ms. */
  readonly #heard = new Map<string, number>();

  get({ hash, shown }: KeyName): Caller | undefined {
    if (shown?.session !== undefined && this.#ended.has(shown.session.id)) return undefined;
    const caller = this.#callers.get(nameOf({ hash, shown }));
    return caller === undefined || shown === undefined ? caller : { ...caller, shown };
  }

  /** Whose it is or was: it may have died since. */
  met({ hash, shown }: KeyName): Caller | undefined {
    const name = nameOf({ hash, shown });
    return this.#callers.get(name) ?? this.#died.get(name);
  }

  /** `get`, where its register has heard of a use by a peer lately and need not hear of this one. */
  heardLately(key: KeyName, nowMs: number): Caller | undefined {
    const sinceMs = nowMs - (this.#heard.get(nameOf(key)) ?? -Infinity);
    return sinceMs >= 0 && sinceMs < HEARD_MS ? this.get(key) : undefined;
  }

  /** `learn`, from what its register said to a peer's request of now. */
  hear(key: Learned, said: Key, nowMs: number): Caller {
    const caller = this.learn(key, said);
    const name = nameOf(key);
    this.#heard.delete(name); // the one heard last goes last
    evictOldest(this.#heard, KEYS_MAX);
    this.#heard.set(name, nowMs);
    return caller;
  }

  /**
   * Hears why one was refused. Where it is dead, whoever uses it again asks its register, before a body is read or a
   * wallet asked; where it is so for good, nobody.
   */
  refused({ hash, shown }: KeyName, failure: Failure): void {
    if (failure.kind !== "invalid_api_key") return;
    const session = shown?.session?.id;
    if (session === undefined) this.#bury(nameOf({ hash, shown }));
    else add(this.#ended, session);
    if (failure.isForGood === true) add(this.#dead, session ?? nameOf({ hash, shown }));
  }

  #bury(name: string): void {
    const caller = this.#callers.get(name);
    if (caller === undefined) return;
    this.#callers.delete(name);
    evictOldest(this.#died, KEYS_MAX);
    this.#died.set(name, caller);
  }

  /** Whether it was heard that this can never live again. */
  isDead({ hash, shown }: KeyName): boolean {
    return this.#dead.has(shown?.session?.id ?? nameOf({ hash, shown }));
  }

  /** Remembers and gives whose the key is. */
  learn({ hash, home, shown }: Learned, said: Key): Caller {
    const { keyId, orgId, memberId, scope } = said;
    // while a new version rolls out an older object may answer in its own shape: that is not remembered
    assert(typeof orgId === "string", "a register says whose its key is");
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home };
    evictOldest(this.#callers, KEYS_MAX);
    this.#callers.set(nameOf({ hash, shown }), caller);
    return shown === undefined ? caller : { ...caller, shown };
  }
}

function nameOf({ hash, shown }: KeyName): string {
  return secretOf(hash, shown) ?? hash;
}

function add(names: Set<string>, name: string): void {
  evictOldest(names, KEYS_MAX);
  names.add(name);
}
