import type { KeySecret } from "../../shared/config/config.ts";
import { assert } from "../../shared/assert.ts";
import { presentedSecretHash } from "../../shared/caller.ts";
import type { AdmittedRequest, Caller, PresentedSecret, VerifiedKey } from "../../shared/caller.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import type { Key } from "../../shared/key.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { isRetryable, toStorageFailure } from "../../shared/storage-failure.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import { withTimeout } from "../../shared/timers.ts";
import { verifyKey } from "./api-key.ts";
import { SESSION_TOKEN_PREFIX, verifySession, SESSION_TOKEN_LENGTH_MAX } from "./session-token.ts";
import type { StubGetters } from "../../shared/contracts/objects.ts";
import type { AdmittedKey } from "../../shared/contracts/register.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import type { Region } from "../../shared/regions.ts";

const REGISTER_TIMEOUT_MS = 6000;

/** Headers and secrets for verifying a key. */
export type KeyVerificationInput = {
  readonly authorization: string | null;
  readonly apiKey?: string | null;
  readonly keySecrets: readonly KeySecret[];
  readonly region: Region;
  readonly origin?: () => string | null;
  /** Current time (Unix ms). */
  readonly now?: number;
};

/**
 * Time (ms) after a session's expiry. From then on, this region rejects the session without I/O.
 */
const SESSION_GRACE_MS = 60_000;

export type KeyAdmissionDeps = StubGetters<"register", "whose" | "admit"> &
  StubGetters<"wallet", "admit"> & {
    readonly region: Region;
    readonly callers: KeyOwnerCache;
    readonly after?: TimerFunction;
  };

/** Verifies a request's key without I/O. */
export async function verifyRequestKey(
  request: KeyVerificationInput,
): Promise<Result<VerifiedKey>> {
  const { token, twoHeaders } = readCredential(request.authorization, request.apiKey ?? null);
  const key = token === null ? null : await verifyToken(token, request.keySecrets);
  if (key === null) return refuse({ kind: "invalid_api_key", ...(twoHeaders && { twoHeaders }) });
  const sessionRefusal = refuseSession(key, request);
  if (sessionRefusal !== null) return sessionRefusal;
  if (key.home !== request.region && key.scope === "regional") {
    return refuse({ kind: "region_mismatch", home: key.home });
  }
  return success(key);
}

function refuseSession(
  { shown }: VerifiedKey,
  { now = 0, origin }: KeyVerificationInput,
): Refusal | null {
  if (shown?.session === undefined) return null;
  const { expiresAt, origins } = shown.session;
  if (expiresAt + SESSION_GRACE_MS <= now) {
    return refuse({ kind: "invalid_api_key", expiredAt: expiresAt });
  }
  const isOriginRejected = origins !== null && !origins.includes(origin?.() ?? "");
  return isOriginRejected ? refuse({ kind: "origin_not_allowed" }) : null;
}

function verifyToken(token: string, secrets: readonly KeySecret[]): Promise<VerifiedKey | null> {
  return isSession(token) ? verifySession(token, secrets) : verifyKey(token, secrets);
}

/**
 * Admits a key through its wallet at home, or through the key object at a peer. If the object
 * doesn't respond, fails with 503, never with 401.
 */
export async function admitKey(
  key: VerifiedKey,
  admitter: KeyAdmissionDeps,
): Promise<Result<AdmittedRequest>> {
  const { callers, region, after } = admitter;
  if (callers.isRevoked(key)) return refuse({ kind: "invalid_api_key" });
  const admit = key.home === region ? admitAtHome : admitAtPeer;
  try {
    const admission = await withTimeout(admit(key, admitter), REGISTER_TIMEOUT_MS, after);
    if (!admission.ok) callers.recordRefusal(key, admission.failure);
    return admission;
  } catch (error) {
    logWarning("admission_unreachable", { reason: errorMessageOf(error) });
    return refuse(toStorageFailure(error));
  }
}

async function admitAtHome(
  key: VerifiedKey,
  { register, wallet, callers }: KeyAdmissionDeps,
): Promise<Result<AdmittedRequest>> {
  let caller = callers.get(key);
  if (caller === undefined) {
    const secret = presentedSecretHash(key.hash, key.shown);
    const identified = await retryOnce(() => register(key.hash).whose(secret));
    if (!identified.ok) return identified;
    caller = callers.addOwner(key, identified.value);
  }
  const { orgId, shown } = caller;
  const admission = await retryOnce(() => wallet(orgId).admit(key.hash, shown));
  return admission.ok ? success(toAdmitted(caller, admission.value)) : admission;
}

async function admitAtPeer(
  key: VerifiedKey,
  { register }: KeyAdmissionDeps,
): Promise<Result<AdmittedRequest>> {
  const { hash: keyHash, home, shown } = key;
  const secret = presentedSecretHash(keyHash, shown);
  const pacedSession = shown?.session && { id: shown.session.id, rpmLimit: shown.session.rpmLimit };
  const admission = await retryOnce(() => register(keyHash).admit(home, secret, pacedSession));
  if (!admission.ok) return admission;
  const { keyId, orgId, memberId, scope } = admission;
  const caller = { keyId, keyHash, orgId, memberId, scope, home, ...(shown && { shown }) };
  return success(toAdmitted(caller, admission));
}

/**
 * Retries a call once. If only the response was lost, the request counts twice toward the rate
 * limit.
 */
async function retryOnce<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isRetryable(error)) throw error;
    return await call();
  }
}

function toAdmitted(
  caller: Caller,
  { limit, remaining, resetMs, isLimited, priceList, policies, paused }: AdmittedKey,
): AdmittedRequest {
  const rate = { limit, remaining, resetMs };
  return {
    caller,
    rate,
    ...(isLimited === true && { isLimited }),
    ...(priceList !== undefined && { priceList }),
    ...(policies !== undefined && { policies }),
    ...(paused !== undefined && { paused }),
  };
}

const HEADER_CHARACTERS_MAX = 128;

/**
 * Returns the bearer token. The scheme is case-insensitive (RFC 9110, 11.1). Rejects a comma, which
 * joins two headers.
 */
export function readBearerToken(authorization: string | null): string | null {
  if (authorization === null || authorization.length > SESSION_TOKEN_LENGTH_MAX + SCHEME_LENGTH) {
    return null;
  }
  const token = /^bearer ([^\s,]+)$/i.exec(authorization)?.[1] ?? null;
  return token !== null && authorization.length > HEADER_CHARACTERS_MAX && !isSession(token)
    ? null
    : token;
}

const SCHEME_LENGTH = "bearer ".length;

function isSession(token: string): boolean {
  return token.startsWith(SESSION_TOKEN_PREFIX);
}

const TURNPIKE_PREFIX = "svc_";

/**
 * Returns the credential in `Authorization` or `x-api-key`, preferably one that Turnpike issued.
 * Rejects two different Turnpike credentials.
 */
export function readCredential(authorization: string | null, apiKey: string | null): Credential {
  const bearer = readBearerToken(authorization);
  const key = apiKey?.trim() ?? "";
  if (key === "" || key === bearer) return { token: bearer };
  const longest = isSession(key) ? SESSION_TOKEN_LENGTH_MAX : HEADER_CHARACTERS_MAX;
  const isTurnpikeKey = key.startsWith(TURNPIKE_PREFIX) && key.length <= longest;
  if (bearer === null) return { token: isTurnpikeKey ? key : null };
  if (!bearer.startsWith(TURNPIKE_PREFIX)) {
    return isTurnpikeKey
      ? { token: key, twoHeaders: "x-api-key" }
      : { token: bearer, twoHeaders: "authorization" };
  }
  return key.startsWith(TURNPIKE_PREFIX)
    ? { token: null, twoHeaders: "both" }
    : { token: bearer, twoHeaders: "authorization" };
}

type Credential = {
  readonly token: string | null;
  readonly twoHeaders?: Extract<Failure, { kind: "invalid_api_key" }>["twoHeaders"];
};

const KEYS_MAX = 10_000;
/** Minimum ms between two calls to a key's object, for requests that arrive in other regions. */
const IDENTIFY_INTERVAL_MS = 15_000;

type PresentedKey = { readonly hash: string; readonly shown?: PresentedSecret | undefined };
type KeyIdentity = PresentedKey & Pick<VerifiedKey, "home">;

/** The isolate's cache of facts that never change: key owners, revoked keys and ended sessions. */
export class KeyOwnerCache {
  readonly #callers = new Map<string, Omit<Caller, "shown">>();
  readonly #endedSessions = new Set<string>();
  readonly #rejectedCallers = new Map<string, Omit<Caller, "shown">>();
  readonly #revoked = new Set<string>();
  readonly #identifiedAtMs = new Map<string, number>();

  get({ hash, shown }: PresentedKey): Caller | undefined {
    if (shown?.session !== undefined && this.#endedSessions.has(shown.session.id)) return undefined;
    const caller = this.#callers.get(secretHashOf({ hash, shown }));
    return caller === undefined || shown === undefined ? caller : { ...caller, shown };
  }

  getIncludingRejected({ hash, shown }: PresentedKey): Caller | undefined {
    const name = secretHashOf({ hash, shown });
    return this.#callers.get(name) ?? this.#rejectedCallers.get(name);
  }

  getIfRecentlyIdentified(key: PresentedKey, nowMs: number): Caller | undefined {
    const sinceMs = nowMs - (this.#identifiedAtMs.get(secretHashOf(key)) ?? -Infinity);
    return sinceMs >= 0 && sinceMs < IDENTIFY_INTERVAL_MS ? this.get(key) : undefined;
  }

  recordIdentified(key: KeyIdentity, record: Key, nowMs: number): Caller {
    const caller = this.addOwner(key, record);
    const name = secretHashOf(key);
    this.#identifiedAtMs.delete(name);
    evictOldest(this.#identifiedAtMs, KEYS_MAX);
    this.#identifiedAtMs.set(name, nowMs);
    return caller;
  }

  recordRefusal({ hash, shown }: PresentedKey, failure: Failure): void {
    if (failure.kind !== "invalid_api_key") return;
    const session = shown?.session?.id;
    if (session === undefined) this.#moveToRejected(secretHashOf({ hash, shown }));
    else addBounded(this.#endedSessions, session);
    if (failure.isForGood !== true) return;
    addBounded(this.#revoked, session ?? secretHashOf({ hash, shown }));
  }

  #moveToRejected(name: string): void {
    const caller = this.#callers.get(name);
    if (caller === undefined) return;
    this.#callers.delete(name);
    evictOldest(this.#rejectedCallers, KEYS_MAX);
    this.#rejectedCallers.set(name, caller);
  }

  isRevoked({ hash, shown }: PresentedKey): boolean {
    return this.#revoked.has(shown?.session?.id ?? secretHashOf({ hash, shown }));
  }

  addOwner({ hash, home, shown }: KeyIdentity, record: Key): Caller {
    const { keyId, orgId, memberId, scope } = record;
    // During a rollout, an older object can return another format.
    assert(typeof orgId === "string", "a register says whose its key is");
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home };
    evictOldest(this.#callers, KEYS_MAX);
    this.#callers.set(secretHashOf({ hash, shown }), caller);
    return shown === undefined ? caller : { ...caller, shown };
  }
}

function secretHashOf({ hash, shown }: PresentedKey): string {
  return presentedSecretHash(hash, shown) ?? hash;
}

function addBounded(names: Set<string>, name: string): void {
  evictOldest(names, KEYS_MAX);
  names.add(name);
}
