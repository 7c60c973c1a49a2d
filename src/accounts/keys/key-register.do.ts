import { DurableObject } from "cloudflare:workers";
import { assert } from "../../shared/assert.ts";
import { elapsedMs, now } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";
import { logAlert, logWarning, reasonOf } from "../../shared/log.ts";
import { isLiveSecret } from "../../shared/key.ts";
import type { KeySecrets } from "../../shared/key.ts";
import type { Admission, Identified, PacedSession } from "../../shared/contracts/register.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import { storageFailure } from "../../shared/storage-failure.ts";
import { makeTables } from "../../shared/tables.do.ts";
import { within } from "../../shared/timers.ts";
import { revokeKeyByHash } from "./keys.store.ts";
import {
  isRepeatedWrite,
  markRevocationUnsaved,
  unsavedRevocation,
  markUseUnsaved,
  markRevocationSaved,
  markUseSaved,
  readMemory,
  REGISTER_TABLES,
  storeAdmission,
  storeClamp,
  storeKey,
  storeRetired,
  updateKey,
} from "./register-memory.do.ts";
import { keyLookup, HomeUnreachable } from "./key-lookup.ts";
import type { KeyLookup } from "./key-lookup.ts";
import type { RegisterMemory, RegisteredKey } from "./register-memory.do.ts";
import { SessionRateWindows } from "./session-rate-windows.ts";
import { CLOCK_LAG_MAX_MS } from "../../shared/rate-window.ts";
import type { RateWindow } from "../../shared/rate-window.ts";
import type { Region } from "../../shared/regions.ts";

/** `last_used_at` is written, and the record refreshed, at most this often; a last use waits no longer to be noted. */
const TOUCH_INTERVAL_MS = 60_000;
const BOOK_TIMEOUT_MS = 5_000;
/** A key with a tombstone: there is no way back. */
const DEAD = { kind: "invalid_api_key", isForGood: true } as const;
/** A book that is away is told of a dead key this often. */
const BOOK_RETRY_MS = 15_000;

/**
 * One per key and region, named by the key's hash: who the key is, whether it lives, and, away from the
 * key's home, the exact log of its last minute; at home its organization's wallet admits instead and asks
 * here who it is. Every admission is stored before it is answered, so an eviction, a restart or a stale
 * second instance never admits more. An unknown key leaves nothing in storage. Its calls: `RegisterCalls`.
 */
export class KeyRegister extends DurableObject<Env> {
  /** Null: storage must be read, at the start and after anything went wrong. */
  #memory: RegisterMemory | null = null;
  /** The one question to the book that all callers of a first use share. */
  #learning: Promise<void> | null = null;
  /** How often an operator has changed the limit here: what the book said before that is out of date. */
  #limitsSet = 0;
  /** Who knows the key: this region's book, or its home's. Every call says which. */
  #home: Region | null = null;
  readonly #sessions = new SessionRateWindows();
  /** The newest use that this instance has seen, Unix ms. */
  #usedAt = 0;

  admit(home: Region | null = null, secret?: string, session?: PacedSession): Promise<Admission> {
    this.#home = home;
    return this.#known(() => this.#decide(secret, session));
  }

  identify(writeId: string | null = null, secret?: string): Promise<Identified> {
    return this.#known(() => this.#identified(writeId, secret));
  }

  whose(secret?: string): Promise<Identified> {
    return this.#known(() => this.#named(secret));
  }

  async refresh(usedAt: number): Promise<Identified> {
    const known = await this.whose();
    if (known.ok || this.#memory?.key) {
      this.#noteTouch();
      await this.#touch(usedAt);
    }
    return this.whose();
  }

  /** Decides with what storage or, on first use, the book says of the key. */
  async #known<T>(decide: () => T | Refusal): Promise<T | Refusal> {
    try {
      const { key, revokedAt } = this.#remember();
      if (key === null && revokedAt === null) await this.#learn();
      // No await from here on: what is read, decided and written belongs to one turn.
      return decide();
    } catch (error) {
      this.#memory = null;
      if (error instanceof HomeUnreachable) return refuse({ kind: "home_region_unreachable" });
      logWarning("register_storage_failed", { reason: reasonOf(error) });
      return refuse(storageFailure(error));
    }
  }

  revoke(revokedAt: number): number {
    this.#memory = null;
    makeTables(this.ctx.storage, REGISTER_TABLES);
    this.ctx.storage.sql.exec(
      "INSERT INTO tombstone (one, revoked_at) VALUES (1, ?) ON CONFLICT (one) DO NOTHING",
      revokedAt,
    );
    return this.#remember().revokedAt ?? revokedAt;
  }

  async tellBook(): Promise<void> {
    markRevocationUnsaved(this.ctx.storage.sql, this.#hash());
    await this.ctx.storage.setAlarm(elapsedMs() + BOOK_RETRY_MS);
  }

  /** Tells the book what it is owed. Catches everything: a throw would use up the platform's six retries. */
  override async alarm(): Promise<void> {
    try {
      await this.#tellUse();
      const { revokedAt } = this.#remember();
      const hash = unsavedRevocation(this.ctx.storage.sql);
      if (hash === null || revokedAt === null) return;
      await within(revokeKeyByHash(this.env.DB, hash, revokedAt), BOOK_TIMEOUT_MS);
      markRevocationSaved(this.ctx.storage.sql);
    } catch (error) {
      this.#memory = null;
      logWarning("revocation_not_in_book", { reason: reasonOf(error) });
      await this.ctx.storage.setAlarm(elapsedMs() + BOOK_RETRY_MS);
    }
  }

  setLimit(rpmLimit: number): void {
    this.#limitsSet++;
    this.#amend({ rpmLimit });
  }

  setTerms(terms: KeyTerms): void {
    this.#limitsSet++;
    this.#amend({ terms });
  }

  setSecrets(secrets: KeySecrets): void {
    this.#limitsSet++;
    this.#amend({ secrets });
  }

  retire(secret: string, retiresAt: number): void {
    this.#memory = null;
    makeTables(this.ctx.storage, REGISTER_TABLES);
    storeRetired(this.ctx.storage.sql, secret, retiresAt);
  }

  #decide(secret: string | undefined, session: PacedSession | undefined): Admission {
    const { window, key, revokedAt } = this.#remember();
    if (revokedAt !== null) return refuse(DEAD);
    if (key === null || !this.#isLive(secret)) return refuse({ kind: "invalid_api_key" });
    const clockMs = now(this.env);
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) this.#clampTo(clockMs, window, key);
    const ofSession = this.#sessions.refuse(session, clockMs);
    if (ofSession !== null) return ofSession;
    const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      return refuse({ kind: "rate_limited", scope: "key", limit, retryAfterMs, orgId });
    }
    storeAdmission(this.ctx.storage.sql, decision.entry);
    window.append(decision.entry);
    this.#touchWhenDue(decision.entry.at);
    const { remaining, resetMs } = decision;
    const rate = this.#sessions.take(session, clockMs) ?? { limit, remaining, resetMs };
    return { ok: true, keyId, orgId, memberId, scope, ...rate };
  }

  /** Whether the key may be used with this secret, as far as this region can say. */
  #isLive(secret: string | undefined): boolean {
    const { key, retired } = this.#remember();
    if (secret === undefined) return true;
    if ((retired.get(secret) ?? Infinity) <= now(this.env)) return false;
    const keyHash = this.#hash();
    const secrets = key?.secrets ?? null;
    if (secrets === null && secret !== keyHash) return !this.#book().isOurs;
    return isLiveSecret({ keyHash, secrets }, secret, now(this.env));
  }

  #identified(writeId: string | null, secret: string | undefined): Identified {
    const named = this.#named(secret);
    if (!named.ok) return named;
    const clockMs = now(this.env);
    if (writeId !== null && isRepeatedWrite(this.ctx.storage.sql, writeId, clockMs)) {
      return refuse({ kind: "conflict", message: "This request came twice.", param: null });
    }
    this.#touchWhenDue(clockMs);
    this.#oweUntilDue(clockMs);
    return named;
  }

  #named(secret: string | undefined): Identified {
    const { key, revokedAt } = this.#remember();
    if (revokedAt !== null) return refuse(DEAD);
    if (key === null || !this.#isLive(secret)) return refuse({ kind: "invalid_api_key" });
    const { touchedAt: _, ...known } = key;
    const { terms } = known;
    if (terms.expiresAt !== null && terms.expiresAt <= now(this.env)) {
      return refuse({ kind: "invalid_api_key", expiredAt: terms.expiresAt });
    }
    return success(known);
  }

  /** The clock jumped back: what lies in its future counts as admitted now. */
  #clampTo(clockMs: number, window: RateWindow, key: RegisteredKey): void {
    logAlert("clock_stepped_back", { key_id: key.keyId, lag_ms: window.lagMs(clockMs) });
    storeClamp(this.ctx.storage.sql, clockMs);
    window.clamp(clockMs);
    this.#amend({ touchedAt: Math.min(key.touchedAt, clockMs) });
  }

  /** Asks the book once for all who wait, and keeps what it says unless the key was revoked meanwhile. */
  #learn(): Promise<void> {
    this.#learning ??= this.#readBook().finally(() => {
      this.#learning = null;
    });
    return this.#learning;
  }

  async #readBook(): Promise<void> {
    const limitsSet = this.#limitsSet;
    const book = this.#book();
    const found = await within(book.find(this.#hash()), BOOK_TIMEOUT_MS);
    // A read that began before the revocation must not revive the key: the tombstone is asked now.
    if (found === null || this.#remember().revokedAt !== null) return;
    if (found.revokedAt !== null) {
      this.revoke(found.revokedAt);
      return;
    }
    // Nor may it bring back a limit that was changed while it was under way.
    if (limitsSet !== this.#limitsSet) return this.#readBook();
    makeTables(this.ctx.storage, REGISTER_TABLES);
    this.#memory = null;
    // Home notes uses by itself: a minute from now is early enough to ask it again.
    storeKey(this.ctx.storage.sql, { ...found, touchedAt: book.isOurs ? 0 : now(this.env) });
  }

  /** Once a minute of use: notes the use in the book after the answer, and takes over what it says. */
  #touchWhenDue(usedAt: number): void {
    const { key } = this.#remember();
    if (key === null || usedAt - key.touchedAt < TOUCH_INTERVAL_MS) return;
    this.#noteTouch();
    this.ctx.waitUntil(this.#touch(usedAt));
  }

  /** A use before the minute is over is owed, and noted by the alarm unless a later one comes first. */
  #oweUntilDue(usedAt: number): void {
    const { key, owedUse } = this.#remember();
    this.#usedAt = Math.max(this.#usedAt, usedAt);
    if (key === null || owedUse !== null || usedAt <= key.touchedAt) return;
    this.#owe(usedAt, key.touchedAt + TOUCH_INTERVAL_MS - usedAt);
  }

  /** The book lacks a use: the alarm notes it in `delayMs`. Away from home nothing is owed: home notes uses by itself. */
  #owe(usedAt: number, delayMs: number): void {
    if (!this.#book().isOurs) return;
    const owedUse = { hash: this.#hash(), used_at: usedAt };
    markUseUnsaved(this.ctx.storage.sql, owedUse);
    this.#memory = { ...this.#remember(), owedUse };
    void this.ctx.storage.setAlarm(elapsedMs() + Math.max(0, delayMs));
  }

  /** Notes the last use in the book, when it lacks it. */
  async #tellUse(): Promise<void> {
    const { owedUse, key } = this.#remember();
    if (owedUse === null || key === null) return;
    this.#noteTouch();
    await this.#touch(Math.max(owedUse.used_at, this.#usedAt));
  }

  /** Before the attempt, so that neither a slow book nor an eviction makes it two in a minute. */
  #noteTouch(): void {
    this.#amend({ touchedAt: now(this.env) });
  }

  async #touch(usedAt: number): Promise<void> {
    const limitsSet = this.#limitsSet;
    try {
      const answer = await this.#book().touch(this.#hash(), usedAt);
      this.#paid(usedAt);
      if (answer === null) this.#forget();
      else if (answer.revokedAt !== null) this.revoke(answer.revokedAt);
      else if (limitsSet === this.#limitsSet) {
        const { rpmLimit, terms, secrets } = answer;
        this.#amend({ rpmLimit, terms, secrets });
      }
    } catch (error) {
      // The book may be down: admissions go on with the record that is known.
      this.#memory = null;
      logWarning("key_use_not_noted", { reason: reasonOf(error) });
      this.#owe(usedAt, TOUCH_INTERVAL_MS);
    }
  }

  /** The book has the use of then: a later one may be owed, and waits for its alarm. */
  #paid(usedAt: number): void {
    const { owedUse } = this.#remember();
    if (owedUse === null || Math.max(owedUse.used_at, this.#usedAt) > usedAt) return;
    markUseSaved(this.ctx.storage.sql);
    this.#memory = { ...this.#remember(), owedUse: null };
  }

  /** The book does not know the key (any more): the next request asks it again. */
  #forget(): void {
    this.#memory = null;
    this.ctx.storage.sql.exec("DELETE FROM record");
  }

  /** What is new of the key is stored; memory follows. */
  #amend(change: Partial<RegisteredKey>): void {
    const memory = this.#remember();
    if (memory.key === null) return;
    const key = { ...memory.key, ...change };
    if (updateKey(this.ctx.storage.sql, memory.key, key)) this.#memory = { ...memory, key };
  }

  #remember(): RegisterMemory {
    this.#memory ??= readMemory(this.ctx.storage);
    return this.#memory;
  }

  #book(): KeyLookup {
    return keyLookup(this.env, this.#home);
  }

  #hash(): string {
    const name = this.ctx.id.name ?? this.#remember().owedUse?.hash;
    assert(name !== undefined, "a register is named by its key's hash");
    return name;
  }
}
