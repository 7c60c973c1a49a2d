import { DurableObject } from "cloudflare:workers";
import { assert } from "../../shared/assert.ts";
import { elapsedMs, now } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";
import { logAlert, logWarning, errorMessageOf } from "../../shared/log.ts";
import { isActiveSecret } from "../../shared/key.ts";
import type { KeySecrets } from "../../shared/key.ts";
import type {
  KeyAdmissionResult,
  KeyResult,
  RateLimitedSession,
} from "../../shared/contracts/register.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import type { RateLimitState } from "../../shared/key-status.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import { createOrMigrateTables } from "../../shared/tables.do.ts";
import { withTimeout } from "../../shared/timers.ts";
import { revokeKeyByHash } from "./keys.store.ts";
import {
  isRepeatedWrite,
  markRevocationPending,
  selectUnsavedRevocation,
  markKeyUsePending,
  markRevocationSaved,
  markKeyUseSaved,
  readKeyObjectMemory,
  KEY_OBJECT_TABLES,
  storeAdmission,
  clampStoredAdmissions,
  storeKeyRecord,
  storeRetiredSecret,
  updateKeyRecord,
} from "./register-memory.do.ts";
import { createKeyLookup, HomeUnreachableError } from "./key-lookup.ts";
import type { KeyLookup } from "./key-lookup.ts";
import type { KeyObjectMemory, KeyObjectRecord } from "./register-memory.do.ts";
import { CLOCK_LAG_MAX_MS, RateWindow } from "../../shared/rate-window.ts";
import type { Region } from "../../shared/regions.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

/** Minimum ms between two writes of `last_used_at`, and between two lookups of the key. */
const TOUCH_INTERVAL_MS = 60_000;
const DATABASE_TIMEOUT_MS = 5_000;
const KEY_REVOKED = { kind: "invalid_api_key", isForGood: true } as const;
const DATABASE_RETRY_MS = 15_000;

/**
 * The object that stores a key's data and revocation in one region. At a peer, it also stores the
 * exact times of the last minute's requests.
 */
export class KeyRegister extends DurableObject<Env> {
  /** The key's data in memory, or null before the first read of storage. */
  #memory: KeyObjectMemory | null = null;
  #pendingRead: Promise<void> | null = null;
  #limitChanges = 0;
  #home: Region | null = null;
  readonly #sessions = new SessionRateWindows();
  #lastUsedAt = 0;

  admit(
    home: Region | null = null,
    secret?: string,
    session?: RateLimitedSession,
  ): Promise<KeyAdmissionResult> {
    this.#home = home;
    return this.#withKey(() => this.#admitRequest(secret, session));
  }

  identify(writeId: string | null = null, secret?: string): Promise<KeyResult> {
    return this.#withKey(() => this.#identifyKey(writeId, secret));
  }

  whose(secret?: string): Promise<KeyResult> {
    return this.#withKey(() => this.#activeKey(secret));
  }

  async refresh(usedAt: number): Promise<KeyResult> {
    const known = await this.whose();
    if (known.ok || this.#memory?.key) {
      this.#markUseRecorded();
      await this.#recordUse(usedAt);
    }
    return this.whose();
  }

  async #withKey<T>(decide: () => T | Refusal): Promise<T | Refusal> {
    try {
      const { key, revokedAt } = this.#readMemory();
      if (key === null && revokedAt === null) await this.#readKeyOnce();
      // No `await` from here on, so that all writes commit together.
      return decide();
    } catch (error) {
      this.#memory = null;
      if (error instanceof HomeUnreachableError) return refuse({ kind: "home_region_unreachable" });
      logWarning("register_storage_failed", { reason: errorMessageOf(error) });
      return refuse(toStorageFailure(error));
    }
  }

  revoke(revokedAt: number): number {
    this.#memory = null;
    createOrMigrateTables(this.ctx.storage, KEY_OBJECT_TABLES);
    this.ctx.storage.sql.exec(
      "INSERT INTO tombstone (one, revoked_at) VALUES (1, ?) ON CONFLICT (one) DO NOTHING",
      revokedAt,
    );
    return this.#readMemory().revokedAt ?? revokedAt;
  }

  async tellBook(): Promise<void> {
    markRevocationPending(this.ctx.storage.sql, this.#hash());
    await this.ctx.storage.setAlarm(elapsedMs() + DATABASE_RETRY_MS);
  }

  /**
   * Writes pending uses and revocations to D1. Never throws, because the platform retries an alarm
   * only six times.
   */
  override async alarm(): Promise<void> {
    try {
      await this.#recordPendingUse();
      const { revokedAt } = this.#readMemory();
      const hash = selectUnsavedRevocation(this.ctx.storage.sql);
      if (hash === null || revokedAt === null) return;
      await withTimeout(revokeKeyByHash(this.env.DB, hash, revokedAt), DATABASE_TIMEOUT_MS);
      markRevocationSaved(this.ctx.storage.sql);
    } catch (error) {
      this.#memory = null;
      logWarning("revocation_not_in_book", { reason: errorMessageOf(error) });
      await this.ctx.storage.setAlarm(elapsedMs() + DATABASE_RETRY_MS);
    }
  }

  setLimit(rpmLimit: number): void {
    this.#limitChanges++;
    this.#changeKeyRecord({ rpmLimit });
  }

  setTerms(terms: KeyTerms): void {
    this.#limitChanges++;
    this.#changeKeyRecord({ terms });
  }

  setSecrets(secrets: KeySecrets): void {
    this.#limitChanges++;
    this.#changeKeyRecord({ secrets });
  }

  retire(secret: string, retiresAt: number): void {
    this.#memory = null;
    createOrMigrateTables(this.ctx.storage, KEY_OBJECT_TABLES);
    storeRetiredSecret(this.ctx.storage.sql, secret, retiresAt);
  }

  #admitRequest(
    secret: string | undefined,
    session: RateLimitedSession | undefined,
  ): KeyAdmissionResult {
    const { window, key, revokedAt } = this.#readMemory();
    if (revokedAt !== null) return refuse(KEY_REVOKED);
    if (key === null || !this.#isLive(secret)) return refuse({ kind: "invalid_api_key" });
    const clockMs = now(this.env);
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) this.#clampTimes(clockMs, window, key);
    const sessionRefusal = this.#sessions.refuse(session, clockMs);
    if (sessionRefusal !== null) return sessionRefusal;
    const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      return refuse({ kind: "rate_limited", scope: "key", limit, retryAfterMs, orgId });
    }
    storeAdmission(this.ctx.storage.sql, decision.entry);
    window.append(decision.entry);
    this.#recordUseIfDue(decision.entry.at);
    const { remaining, resetMs } = decision;
    const rate = this.#sessions.take(session, clockMs) ?? { limit, remaining, resetMs };
    return { ok: true, keyId, orgId, memberId, scope, ...rate };
  }

  #isLive(secret: string | undefined): boolean {
    const { key, retired } = this.#readMemory();
    if (secret === undefined) return true;
    if ((retired.get(secret) ?? Infinity) <= now(this.env)) return false;
    const keyHash = this.#hash();
    const secrets = key?.secrets ?? null;
    if (secrets === null && secret !== keyHash) return !this.#keyLookup().isLocalDatabase;
    return isActiveSecret({ keyHash, secrets }, secret, now(this.env));
  }

  #identifyKey(writeId: string | null, secret: string | undefined): KeyResult {
    const named = this.#activeKey(secret);
    if (!named.ok) return named;
    const clockMs = now(this.env);
    if (writeId !== null && isRepeatedWrite(this.ctx.storage.sql, writeId, clockMs)) {
      const message = "This request was already received. This duplicate has no effect.";
      return refuse({ kind: "conflict", message, param: null });
    }
    this.#recordUseIfDue(clockMs);
    this.#postponeUse(clockMs);
    return named;
  }

  #activeKey(secret: string | undefined): KeyResult {
    const { key, revokedAt } = this.#readMemory();
    if (revokedAt !== null) return refuse(KEY_REVOKED);
    if (key === null || !this.#isLive(secret)) return refuse({ kind: "invalid_api_key" });
    const { touchedAt: _, ...known } = key;
    const { terms } = known;
    if (terms.expiresAt !== null && terms.expiresAt <= now(this.env)) {
      return refuse({ kind: "invalid_api_key", expiredAt: terms.expiresAt });
    }
    return success(known);
  }

  #clampTimes(clockMs: number, window: RateWindow, key: KeyObjectRecord): void {
    logAlert("clock_stepped_back", { key_id: key.keyId, lag_ms: window.lagMs(clockMs) });
    clampStoredAdmissions(this.ctx.storage.sql, clockMs);
    window.clamp(clockMs);
    this.#changeKeyRecord({ touchedAt: Math.min(key.touchedAt, clockMs) });
  }

  #readKeyOnce(): Promise<void> {
    this.#pendingRead ??= this.#readKey().finally(() => {
      this.#pendingRead = null;
    });
    return this.#pendingRead;
  }

  async #readKey(): Promise<void> {
    const limitChanges = this.#limitChanges;
    const source = this.#keyLookup();
    const found = await withTimeout(source.find(this.#hash()), DATABASE_TIMEOUT_MS);
    // A lookup that began before the revocation must not reactivate the key.
    if (found === null || this.#readMemory().revokedAt !== null) return;
    if (found.revokedAt !== null) {
      this.revoke(found.revokedAt);
      return;
    }
    // A read that began before a limit change must not overwrite the new limit.
    if (limitChanges !== this.#limitChanges) return this.#readKey();
    createOrMigrateTables(this.ctx.storage, KEY_OBJECT_TABLES);
    this.#memory = null;
    // At a peer, this lookup only refreshes the key, so one per minute is enough. The home region
    // records uses.
    storeKeyRecord(this.ctx.storage.sql, {
      ...found,
      touchedAt: source.isLocalDatabase ? 0 : now(this.env),
    });
  }

  #recordUseIfDue(usedAt: number): void {
    const { key } = this.#readMemory();
    if (key === null || usedAt - key.touchedAt < TOUCH_INTERVAL_MS) return;
    this.#markUseRecorded();
    this.ctx.waitUntil(this.#recordUse(usedAt));
  }

  #postponeUse(usedAt: number): void {
    const { key, pendingUse: owedUse } = this.#readMemory();
    this.#lastUsedAt = Math.max(this.#lastUsedAt, usedAt);
    if (key === null || owedUse !== null || usedAt <= key.touchedAt) return;
    this.#storePendingUse(usedAt, key.touchedAt + TOUCH_INTERVAL_MS - usedAt);
  }

  #storePendingUse(usedAt: number, delayMs: number): void {
    if (!this.#keyLookup().isLocalDatabase) return;
    const owedUse = { hash: this.#hash(), used_at: usedAt };
    markKeyUsePending(this.ctx.storage.sql, owedUse);
    this.#memory = { ...this.#readMemory(), pendingUse: owedUse };
    void this.ctx.storage.setAlarm(elapsedMs() + Math.max(0, delayMs));
  }

  async #recordPendingUse(): Promise<void> {
    const { pendingUse: owedUse, key } = this.#readMemory();
    if (owedUse === null || key === null) return;
    this.#markUseRecorded();
    await this.#recordUse(Math.max(owedUse.used_at, this.#lastUsedAt));
  }

  /**
   * Marks the use as recorded before D1 confirms it. Otherwise, a slow write or an eviction would
   * cause a second attempt.
   */
  #markUseRecorded(): void {
    this.#changeKeyRecord({ touchedAt: now(this.env) });
  }

  async #recordUse(usedAt: number): Promise<void> {
    const limitChanges = this.#limitChanges;
    try {
      const answer = await this.#keyLookup().touch(this.#hash(), usedAt);
      this.#clearPendingUse(usedAt);
      if (answer === null) this.#deleteKeyRecord();
      else if (answer.revokedAt !== null) this.revoke(answer.revokedAt);
      else if (limitChanges === this.#limitChanges) {
        const { rpmLimit, terms, secrets } = answer;
        this.#changeKeyRecord({ rpmLimit, terms, secrets });
      }
    } catch (error) {
      // If D1 fails, admissions continue with the stored key.
      this.#memory = null;
      logWarning("key_use_not_noted", { reason: errorMessageOf(error) });
      this.#storePendingUse(usedAt, TOUCH_INTERVAL_MS);
    }
  }

  #clearPendingUse(usedAt: number): void {
    const { pendingUse: owedUse } = this.#readMemory();
    if (owedUse === null || Math.max(owedUse.used_at, this.#lastUsedAt) > usedAt) return;
    markKeyUseSaved(this.ctx.storage.sql);
    this.#memory = { ...this.#readMemory(), pendingUse: null };
  }

  #deleteKeyRecord(): void {
    this.#memory = null;
    this.ctx.storage.sql.exec("DELETE FROM record");
  }

  #changeKeyRecord(change: Partial<KeyObjectRecord>): void {
    const memory = this.#readMemory();
    if (memory.key === null) return;
    const key = { ...memory.key, ...change };
    if (updateKeyRecord(this.ctx.storage.sql, memory.key, key)) this.#memory = { ...memory, key };
  }

  #readMemory(): KeyObjectMemory {
    this.#memory ??= readKeyObjectMemory(this.ctx.storage);
    return this.#memory;
  }

  #keyLookup(): KeyLookup {
    return createKeyLookup(this.env, this.#home);
  }

  #hash(): string {
    const name = this.ctx.id.name ?? this.#readMemory().pendingUse?.hash;
    assert(name !== undefined, "a register is named by its key's hash");
    return name;
  }
}

const SESSIONS_MAX = 500;

/**
 * Rate limits of sessions, in a peer's memory. A request above a session's limit doesn't count
 * toward the key's limit.
 */
class SessionRateWindows {
  readonly #windows = new Map<string, RateWindow>();

  refuse(session: RateLimitedSession | undefined, clockMs: number): Refusal | null {
    const limit = session?.rpmLimit ?? null;
    if (session === undefined || limit === null) return null;
    const window = this.#windows.get(session.id);
    if (window === undefined) return null;
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) window.clamp(clockMs);
    const decision = window.decide(limit, clockMs);
    if (decision.admitted) return null;
    const { retryAfterMs } = decision;
    return refuse({ kind: "rate_limited", scope: "session", limit, retryAfterMs });
  }

  take(session: RateLimitedSession | undefined, clockMs: number): RateLimitState | null {
    const limit = session?.rpmLimit ?? null;
    if (session === undefined || limit === null) return null;
    const window = this.#windowOf(session.id);
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) return null;
    window.append(decision.entry);
    const { remaining, resetMs } = decision;
    return { limit, remaining, resetMs };
  }

  #windowOf(id: string): RateWindow {
    const known = this.#windows.get(id);
    if (known !== undefined) return known;
    evictOldest(this.#windows, SESSIONS_MAX);
    const window = new RateWindow();
    this.#windows.set(id, window);
    return window;
  }
}
