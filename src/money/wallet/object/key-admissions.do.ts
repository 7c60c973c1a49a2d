import { assert } from "../../../shared/assert.ts";
import { timestamp } from "../../../shared/clock.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import type { Key, KeySecrets } from "../../../shared/key.ts";
import type {
  KeyRegisterMethods,
  AdmittedKey,
  KeyResult,
} from "../../../shared/contracts/register.ts";
import { isActiveSecret, keySecretsToJson } from "../../../shared/key.ts";
import { presentedSecretHash } from "../../../shared/caller.ts";
import type { RequestCredential, PresentedSecret } from "../../../shared/caller.ts";
import { hasLimits, EMPTY_KEY_TERMS, keyTermsToJson } from "../../../shared/key-terms.ts";
import type { KeyTerms } from "../../../shared/key-terms.ts";
import type { RateLimitState } from "../../../shared/key-status.ts";
import { logAlert, logWarning, errorMessageOf } from "../../../shared/log.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import type { StoredAdmission } from "../../../shared/rate-window.ts";
import { toStorageFailure } from "../../../shared/storage-failure.ts";
import { withTimeout } from "../../../shared/timers.ts";
import {
  KEY_REFRESH_MS,
  markKeyRevoked,
  clampKeyTimes,
  endSessionsBeforeRotation,
  insertAdmission,
  isKeyUnchangedInDatabase,
  putKey,
  selectKey,
  evictActiveKeys,
  updateKey,
} from "../tables/key-rows.do.ts";
import type { ActiveKey, KnownKey } from "../tables/key-rows.do.ts";
import { addEvent } from "./event-log.do.ts";
import type { KeyRevocation, KeyRotation } from "../../../shared/contracts/wallet.ts";
import { holdTermsOf, pausedField, policyLayersField } from "./hold-checks.do.ts";
import { syncDollarBudget } from "./key-dollar-budget.do.ts";
import { endPausesOfDeletedOwner } from "./pauses.do.ts";
import { refuseInvalidSession } from "./sessions.do.ts";
import { recordKeyUse } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import type { PublishOutcome } from "./publish.do.ts";
import type { Objects } from "../../../shared/contracts/objects.ts";
import { evictOldest } from "../../../shared/evict-oldest.ts";

const USES_PER_CALL_MAX = 500;
const REGISTER_TIMEOUT_MS = 5_000;
const CACHED_KEYS_MAX = 2_000;
const LOOKUP_ATTEMPTS_MAX = 20;

type AdmissionContext = Pick<Objects, "register"> & {
  readonly tx: () => Tx | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
};

/** A lookup in progress. `isStale`: the key has changed since the lookup began. */
type Lookup = { readonly hash: string; isStale: boolean };

type KeyLookup = (register: KeyRegisterMethods) => Promise<KeyResult>;

/** An admission that passed all checks but isn't stored yet. */
export type CheckedAdmission = {
  readonly hash: string;
  readonly key: KnownKey;
  readonly record: ActiveKey;
  readonly entry: StoredAdmission;
  readonly rate: RateLimitState;
};

/**
 * Admits requests by API key in the home region. The log of the last minute's admissions is exact,
 * and stored before the response. Looks up a key at its first use, then once a minute.
 */
export class KeyAdmissions {
  readonly #context: AdmissionContext;
  readonly #cached = new Map<string, KnownKey>();
  readonly #loading = new Map<string, Promise<Refusal | null>>();
  readonly #lookups = new Set<Lookup>();

  constructor(context: AdmissionContext) {
    this.#context = context;
  }

  clearCache(): void {
    this.#cached.clear();
  }

  evictAll({ sql }: Tx): void {
    for (const lookup of this.#lookups) lookup.isStale = true;
    this.#cached.clear();
    evictActiveKeys(sql);
  }

  /** Reports whether `loadKey` can be skipped. */
  hasKey({ sql }: Tx, hash: string): boolean {
    const key = this.#key(sql, hash);
    return key !== null && (key.record !== null || key.revokedAt !== null);
  }

  findActiveKey(tx: Tx, { keyHash: hash, shown }: RequestCredential): Result<ActiveKey> {
    const { sql, clockMs } = tx;
    const key = this.#key(sql, hash);
    if (key !== null && key.revokedAt !== null) {
      return refuse({ kind: "invalid_api_key", isForGood: true });
    }
    if (key === null || key.record === null) return refuse({ kind: "invalid_api_key" });
    const { secrets } = key.record;
    const secret = presentedSecretHash(hash, shown);
    if (secret !== undefined && !isActiveSecret({ keyHash: hash, secrets }, secret, clockMs)) {
      return refuse({ kind: "invalid_api_key" });
    }
    const { session } = shown ?? {};
    const over = session === undefined ? null : refuseInvalidSession(tx, session, key.sessionsCut);
    if (over !== null) return over;
    const { expiresAt } = key.record.terms;
    if (expiresAt !== null && clockMs >= expiresAt) {
      return refuse({ kind: "invalid_api_key", expiredAt: expiresAt });
    }
    return success(key.record);
  }

  /**
   * Returns null if the key is active or unknown. Fails if the key, secret or session is revoked or
   * expired.
   */
  refuseInactive(tx: Tx, called: RequestCredential): Refusal | null {
    if (!this.hasKey(tx, called.keyHash)) return null;
    const live = this.findActiveKey(tx, called);
    return live.ok ? null : live;
  }

  loadKey(hash: string): Promise<Refusal | null> {
    const requested = this.#loading.get(hash);
    if (requested !== undefined) return requested;
    const learning = this.#fetchKey(hash).finally(() => {
      this.#loading.delete(hash);
    });
    this.#loading.set(hash, learning);
    return learning;
  }

  checkAdmission(tx: Tx, called: RequestCredential): Result<CheckedAdmission> {
    const live = this.findActiveKey(tx, called);
    if (!live.ok) return live;
    const { keyHash: hash } = called;
    const record = live.value;
    const key = this.#key(tx.sql, hash);
    assert(key !== null, "a living key is known");
    const { window } = key;
    const { clockMs } = tx;
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) this.#clampAdmissions(tx, hash, key);
    const limit = record.rpmLimit;
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      const { orgId } = tx.memory.row;
      return refuse({ kind: "rate_limited", scope: "key", limit, retryAfterMs, orgId });
    }
    const { entry, remaining, resetMs } = decision;
    return success({ hash, key, record, entry, rate: { limit, remaining, resetMs } });
  }

  countAdmission(tx: Tx, { hash, key, record, entry }: CheckedAdmission): void {
    insertAdmission(tx.sql, key.number, entry);
    key.window.append(entry);
    recordKeyUse(tx.memory, hash, entry.at);
    if (entry.at < record.checkedAt + KEY_REFRESH_MS) return;
    this.#refresh(tx, hash, (register) => register.whose());
  }

  /** Finds key uses that a restart may have lost. */
  recoverLostUses(tx: Tx): void {
    for (const hash of tx.memory.dueUses.takeDue(tx.nowMs, USES_PER_CALL_MAX)) {
      const usedAt = this.#key(tx.sql, hash)?.window.lastAt ?? 0;
      if (usedAt > tx.memory.notedAt) recordKeyUse(tx.memory, hash, usedAt);
    }
  }

  /** Looks up published keys again if D1's data differs from the wallet's. */
  refreshPublished(
    tx: Tx | null,
    { uses, touched }: Pick<PublishOutcome, "uses" | "touched">,
  ): void {
    if (tx === null) return;
    const reported = new Map(touched.map((one) => [one.hash, one]));
    for (const { hash, usedAt } of uses) {
      const key = this.#key(tx.sql, hash);
      if (!key?.record || isKeyUnchangedInDatabase(key, key.record, reported.get(hash))) continue;
      this.#refresh(tx, hash, (register) => register.refresh(usedAt));
    }
  }

  rateState(tx: Tx, called: RequestCredential): RateLimitState | null {
    const key = this.#key(tx.sql, called.keyHash);
    const live = this.findActiveKey(tx, called);
    if (key === null || !live.ok) return null;
    const { window } = key;
    const { rpmLimit: limit } = live.value;
    const next = window.decide(limit, tx.clockMs);
    return next.admitted
      ? { limit, remaining: next.remaining + 1, resetMs: next.resetMs }
      : { limit, remaining: 0, resetMs: next.retryAfterMs };
  }

  revoke(tx: Tx, hash: string, revokedAt: number, by?: KeyRevocation): void {
    this.#markLookupsStale(hash);
    this.#cached.delete(hash);
    tx.storage.transactionSync(() => {
      markKeyRevoked(tx.sql, hash, revokedAt);
      if (by === undefined) return;
      const { keyId, actor } = by;
      endPausesOfDeletedOwner(tx, { scope: "key", subject: keyId });
      const data = { revoked_at: timestamp(revokedAt) };
      addEvent(tx, { type: "key.revoked", actor, subject: keyId, data }, [keyId]);
    });
  }

  /** Applies a new rate limit. The admissions of the last minute count toward it. */
  setLimit({ sql }: Tx, hash: string, rpmLimit: number): void {
    this.#markLookupsStale(hash);
    if (this.#key(sql, hash)?.record?.rpmLimit === rpmLimit) return;
    updateKey(sql, hash, "rpm_limit", rpmLimit);
    this.#updateCached(hash, { rpmLimit });
  }

  setTerms(tx: Tx, hash: string, terms: KeyTerms): void {
    this.#markLookupsStale(hash);
    const record = this.#key(tx.sql, hash)?.record;
    tx.storage.transactionSync(() => {
      updateKey(tx.sql, hash, "terms", keyTermsToJson(terms));
      if (record !== null && record !== undefined) syncDollarBudget(tx, record.keyId, terms);
    });
    this.#updateCached(hash, { terms });
  }

  sessionsCut({ sql }: Tx, hash: string): number {
    return this.#key(sql, hash)?.sessionsCut ?? 0;
  }

  setSecrets(tx: Tx, hash: string, secrets: KeySecrets, by?: KeyRotation): void {
    this.#markLookupsStale(hash);
    const [newest, second] = secrets ?? [];
    tx.storage.transactionSync(() => {
      updateKey(tx.sql, hash, "secrets", keySecretsToJson(secrets));
      if (by !== undefined && by.sessionsCut !== null) {
        endSessionsBeforeRotation(tx.sql, hash, by.sessionsCut);
        this.#cached.delete(hash);
        // An empty subject ends only pauses of ended sessions.
        endPausesOfDeletedOwner(tx, { scope: "key", subject: "" });
      }
      if (newest === undefined || second === undefined || by === undefined) return;
      const { retiresAt } = second;
      const data = {
        others_end_at: retiresAt === null ? null : timestamp(retiresAt),
        sessions_ended: by.sessionsCut !== null,
      };
      const { keyId: subject, actor } = by;
      addEvent(tx, { type: "key.rotated", actor, subject, data }, [newest.hash]);
    });
    this.#updateCached(hash, { secrets });
  }

  async #fetchKey(hash: string): Promise<Refusal | null> {
    for (let round = 0; round < LOOKUP_ATTEMPTS_MAX; round++) {
      const lookup = { hash, isStale: false };
      const identified = await this.#lookUp(lookup, (register) => register.identify(null));
      // The failure is copied, because an RPC result stays open until the caller disposes of it.
      if (!identified.ok) return refuse(identified.failure);
      if (lookup.isStale) continue;
      const tx = this.#context.tx();
      if (tx === null) return refuse({ kind: "storage_unavailable" });
      putKey(tx.sql, hash, activeKeyOf(tx, identified.value));
      this.#cached.delete(hash);
      return null;
    }
    return refuse({ kind: "overloaded" });
  }

  async #lookUp(lookup: Lookup, ask: KeyLookup): Promise<KeyResult> {
    this.#lookups.add(lookup);
    try {
      return await withTimeout(ask(this.#context.register(lookup.hash)), REGISTER_TIMEOUT_MS);
    } catch (error) {
      logWarning("key_register_unreachable", { reason: errorMessageOf(error) });
      return refuse(toStorageFailure(error));
    } finally {
      this.#lookups.delete(lookup);
    }
  }

  #markLookupsStale(hash: string): void {
    for (const lookup of this.#lookups) lookup.isStale ||= lookup.hash === hash;
  }

  /** Looks up a key again. Stores the time first, so that lookups run at most once per minute. */
  #refresh(tx: Tx, hash: string, ask: KeyLookup): void {
    this.#setCheckedAt(tx, hash, tx.clockMs);
    this.#context.waitUntil(this.#lookUpAndApply(hash, ask));
  }

  #setCheckedAt({ sql }: Tx, hash: string, checkedAt: number): void {
    updateKey(sql, hash, "checked_at", checkedAt);
    this.#updateCached(hash, { checkedAt });
  }

  #applyKey(tx: Tx, hash: string, { rpmLimit, terms, secrets }: Key): void {
    const before = this.#key(tx.sql, hash)?.record;
    this.setLimit(tx, hash, rpmLimit);
    const knownTerms = before?.terms ?? EMPTY_KEY_TERMS;
    if (keyTermsToJson(terms) !== keyTermsToJson(knownTerms)) this.setTerms(tx, hash, terms);
    const knownSecrets = before?.secrets ?? null;
    if (keySecretsToJson(secrets) !== keySecretsToJson(knownSecrets)) {
      this.setSecrets(tx, hash, secrets);
    }
  }

  /** Looks up a key. If the lookup fails, the key stays valid. */
  async #lookUpAndApply(hash: string, ask: KeyLookup): Promise<void> {
    const lookup = { hash, isStale: false };
    const identified = await this.#lookUp(lookup, ask);
    const tx = this.#context.tx();
    if (tx === null) return;
    if (identified.ok) {
      if (!lookup.isStale) this.#applyKey(tx, hash, identified.value);
    } else if (
      identified.failure.kind === "invalid_api_key" &&
      this.#key(tx.sql, hash)?.revokedAt === null
    ) {
      updateKey(tx.sql, hash, "key_id", null);
      this.#cached.delete(hash);
    }
  }

  /** Changes future admission times to now after the clock moved back. */
  #clampAdmissions(
    { storage, clockMs }: Tx,
    hash: string,
    { number, record, window }: KnownKey,
  ): void {
    const lagMs = window.lagMs(clockMs);
    logAlert("clock_stepped_back", { key_id: record?.keyId ?? null, lag_ms: lagMs });
    clampKeyTimes(storage, number, clockMs);
    window.clamp(clockMs);
    this.#updateCached(hash, { checkedAt: Math.min(record?.checkedAt ?? 0, clockMs) });
  }

  #updateCached(hash: string, change: Partial<ActiveKey>): void {
    const key = this.#cached.get(hash);
    if (key === undefined || key.record === null) return;
    this.#cached.set(hash, { ...key, record: { ...key.record, ...change } });
  }

  #key(sql: SqlStorage, hash: string): KnownKey | null {
    const known = this.#cached.get(hash);
    if (known !== undefined) return known;
    const stored = selectKey(sql, hash);
    if (stored === null) return null;
    evictOldest(this.#cached, CACHED_KEYS_MAX);
    this.#cached.set(hash, stored);
    return stored;
  }
}

export function toAdmittedKey(
  tx: Tx,
  key: ActiveKey,
  rate: RateLimitState,
  shown: PresentedSecret | undefined,
): AdmittedKey {
  const { orgId, priceList } = tx.memory.row;
  const { keyId, memberId, scope } = key;
  const held = holdTermsOf(key, shown);
  return {
    keyId,
    orgId,
    memberId,
    scope,
    ...rate,
    ...((hasLimits(key.terms) || held.session !== undefined) && { isLimited: true }),
    ...(priceList !== null && { priceList }),
    ...policyLayersField(tx, held),
    ...pausedField(tx, keyId, held),
  };
}

function activeKeyOf({ clockMs, memory }: Tx, { orgId, ...reported }: Key): ActiveKey {
  assert(orgId === memory.row.orgId, "a key is admitted by its own organization's wallet");
  return { ...reported, checkedAt: clockMs };
}
