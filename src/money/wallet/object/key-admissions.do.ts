import { assert } from "../../../shared/assert.ts";
import { timestamp } from "../../../shared/clock.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import type { Key, KeySecrets } from "../../../shared/key.ts";
import type { RegisterCalls, AdmittedKey, Identified } from "../../../shared/contracts/register.ts";
import { isLiveSecret, secretsText } from "../../../shared/key.ts";
import { secretOf } from "../../../shared/caller.ts";
import type { RequestCredential, PresentedSecret } from "../../../shared/caller.ts";
import { isLimited, NO_TERMS, termsText } from "../../../shared/key-terms.ts";
import type { KeyTerms, RateState } from "../../../shared/key-terms.ts";
import { logAlert, logWarning, reasonOf } from "../../../shared/log.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import type { StoredAdmission } from "../../../shared/rate-window.ts";
import { storageFailure } from "../../../shared/storage-failure.ts";
import { within } from "../../../shared/timers.ts";
import {
  REFRESH_MS,
  markKeyRevoked,
  clampKey,
  cutSessions,
  insertAdmission,
  matchesDatabase,
  putKey,
  selectKey,
  forgetActiveKey,
  forgetActiveKeys,
  updateChecked,
  updateKeyLimit,
  updateKeySecrets,
  updateKeyTerms,
} from "../tables/key-rows.do.ts";
import type { ActiveKey, KnownKey } from "../tables/key-rows.do.ts";
import { addEvent } from "./event-rows.do.ts";
import type { KeyEnding, KeyRotation } from "../../../shared/contracts/wallet.ts";
import { budgetOf } from "./hold-checks.do.ts";
import { refuseSession } from "./sessions.do.ts";
import { addUse } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import type { PublishOutcome } from "./publish.do.ts";
import type { Objects } from "../../../shared/contracts/objects.ts";
import { evictOldest } from "../../../shared/evict-oldest.ts";

/** So many keys are looked at for a last use in one turn of the alarm. */
const FOUND_AT_ONCE = 500;
const REGISTER_TIMEOUT_MS = 5_000;
/** Keys that memory knows; the tables know all. */
const REMEMBERED_MAX = 2_000;
const ROUNDS_MAX = 20;

/** What admits keys beside the desk. */
type AdmissionDesk = Pick<Objects, "register"> & {
  /** The desk as it is now; null while no wallet is made. */
  readonly desk: () => Tx | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
};

/** A question to a key's register. Stale: the key was changed here meanwhile, which the answer may not know. */
type Question = { readonly hash: string; isStale: boolean };

type AskRegister = (register: RegisterCalls) => Promise<Identified>;

/** A free place in a key's minute. */
export type AdmissionPlace = {
  readonly hash: string;
  readonly key: KnownKey;
  readonly record: ActiveKey;
  readonly entry: StoredAdmission;
  /** What is left of the minute once it is taken. */
  readonly rate: RateState;
};

/**
 * The organization's keys at their home: whether each lives, and the exact log of its last minute, never
 * more than its limit in any 60 s. Who a key is, its register says, once; a
 * revocation and a new limit are told by whoever makes them and count from that turn on. Every admission
 * is stored before it is answered.
 */
export class KeyAdmissions {
  readonly #keeping: AdmissionDesk;
  /** By hash, the one read last at the end. */
  readonly #known = new Map<string, KnownKey>();
  /** The one question to a register that all callers of a first use share. */
  readonly #learning = new Map<string, Promise<Refusal | null>>();
  /** Those that registers have not answered yet. */
  readonly #questions = new Set<Question>();

  constructor(keeping: AdmissionDesk) {
    this.#keeping = keeping;
  }

  /** Memory may be ahead of the tables: they are read again. */
  forget(): void {
    this.#known.clear();
  }

  /** What stands in the tables of the living may be out of date: the register is asked again. */
  unlearn({ sql }: Tx): void {
    for (const question of this.#questions) question.isStale = true;
    this.#known.clear();
    forgetActiveKeys(sql);
  }

  /** Whether `admit` can decide; otherwise `learn` comes first. */
  knows({ sql }: Tx, hash: string): boolean {
    const key = this.#key(sql, hash);
    return key !== null && (key.record !== null || key.revokedAt !== null);
  }

  /**
   * What the key may do; or `invalid_api_key`, when it is not known here, has ended for good, its time is up, or
   * what was shown of it has ended.
   */
  live(desk: Tx, hash: string, shown?: PresentedSecret): Result<ActiveKey> {
    const { sql, clockMs } = desk;
    const key = this.#key(sql, hash);
    if (key !== null && key.revokedAt !== null) {
      return refuse({ kind: "invalid_api_key", isForGood: true });
    }
    if (key === null || key.record === null) return refuse({ kind: "invalid_api_key" });
    const { secrets } = key.record;
    const secret = secretOf(hash, shown);
    if (secret !== undefined && !isLiveSecret({ keyHash: hash, secrets }, secret, clockMs)) {
      return refuse({ kind: "invalid_api_key" });
    }
    const { session } = shown ?? {};
    const over = session === undefined ? null : refuseSession(desk, session, key.sessionsCut);
    if (over !== null) return over;
    const { expiresAt } = key.record.terms;
    if (expiresAt !== null && clockMs >= expiresAt) {
      return refuse({ kind: "invalid_api_key", expiredAt: expiresAt });
    }
    return success(key.record);
  }

  /** Whether the key has ended here, also one that has not been met. */
  isDead(desk: Tx, { keyHash, shown }: RequestCredential): Refusal | null {
    if (!this.knows(desk, keyHash)) return null;
    const live = this.live(desk, keyHash, shown);
    return live.ok ? null : live;
  }

  /** Asks the register who the key is. Null when it is known now; else `invalid_api_key` or our own fault. */
  learn(hash: string): Promise<Refusal | null> {
    const asked = this.#learning.get(hash);
    if (asked !== undefined) return asked;
    const learning = this.#learn(hash).finally(() => {
      this.#learning.delete(hash);
    });
    this.#learning.set(hash, learning);
    return learning;
  }

  /** The next place in the key's minute, not yet taken, or why there is none: `invalid_api_key`, `rate_limited`. */
  place(desk: Tx, hash: string, shown?: PresentedSecret): Result<AdmissionPlace> {
    const live = this.live(desk, hash, shown);
    if (!live.ok) return live;
    const record = live.value;
    const key = this.#key(desk.sql, hash);
    assert(key !== null, "a living key is known");
    const { window } = key;
    const { clockMs } = desk;
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) this.#clamp(desk, hash, key);
    const limit = record.rpmLimit;
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      const { orgId } = desk.memory.row;
      return refuse({ kind: "rate_limited", scope: "key", limit, retryAfterMs, orgId });
    }
    const { entry, remaining, resetMs } = decision;
    return success({ hash, key, record, entry, rate: { limit, remaining, resetMs } });
  }

  /** Takes a place that was given in this turn. */
  take(desk: Tx, { hash, key, record, entry }: AdmissionPlace): void {
    insertAdmission(desk.sql, key.number, entry);
    key.window.append(entry);
    addUse(desk.memory, hash, entry.at);
    if (entry.at < record.checkedAt + REFRESH_MS) return;
    this.#refresh(desk, hash, (register) => register.whose());
  }

  /** Finds last uses that a start may have made forget, for the next publish: of some keys in a turn. */
  findUses(desk: Tx): void {
    for (const hash of desk.memory.dueUses.take(desk.nowMs, FOUND_AT_ONCE)) {
      const usedAt = this.#key(desk.sql, hash)?.window.lastAt ?? 0;
      if (usedAt > desk.memory.notedAt) addUse(desk.memory, hash, usedAt);
    }
  }

  /** The book has these last uses; a key of which it says anything else than is known here is asked for again. */
  noted(desk: Tx | null, { uses, touched }: Pick<PublishOutcome, "uses" | "touched">): void {
    if (desk === null) return;
    const said = new Map(touched.map((one) => [one.hash, one]));
    for (const { hash, usedAt } of uses) {
      const key = this.#key(desk.sql, hash);
      if (!key?.record || matchesDatabase(key, key.record, said.get(hash))) continue;
      this.#refresh(desk, hash, (register) => register.refresh(usedAt)); // it reads the book as well
    }
  }

  /** What is left of a living key's minute when nothing is taken; null for a key that is not known or dead. */
  standing(desk: Tx, hash: string, shown?: PresentedSecret): RateState | null {
    const key = this.#key(desk.sql, hash);
    const live = this.live(desk, hash, shown);
    if (key === null || !live.ok) return null;
    const { window } = key;
    const { rpmLimit: limit } = live.value;
    const next = window.decide(limit, desk.clockMs);
    return next.admitted
      ? { limit, remaining: next.remaining + 1, resetMs: next.resetMs }
      : { limit, remaining: 0, resetMs: next.retryAfterMs };
  }

  /** Ends the key here for good, and says so once. */
  revoke(desk: Tx, hash: string, revokedAt: number, by?: KeyEnding): void {
    this.#outdate(hash);
    this.#known.delete(hash);
    desk.storage.transactionSync(() => {
      markKeyRevoked(desk.sql, hash, revokedAt);
      if (by === undefined) return;
      const { keyId, actor } = by;
      const data = { revoked_at: timestamp(revokedAt) };
      addEvent(desk, { type: "key.revoked", actor, subject: keyId, data }, [keyId]);
    });
  }

  /** A new limit counts from this turn on, for what was admitted before as well. */
  setLimit({ sql }: Tx, hash: string, rpmLimit: number): void {
    this.#outdate(hash);
    if (this.#key(sql, hash)?.record?.rpmLimit === rpmLimit) return;
    updateKeyLimit(sql, hash, rpmLimit);
    this.#amend(hash, { rpmLimit });
  }

  /** New terms count from this turn on. */
  setTerms(desk: Tx, hash: string, terms: KeyTerms): void {
    this.#outdate(hash);
    updateKeyTerms(desk.sql, hash, terms);
    this.#amend(hash, { terms });
    const record = this.#key(desk.sql, hash)?.record;
    if (record !== null && record !== undefined) budgetOf(desk, record.keyId, terms);
  }

  /** The number of the rotation that last ended all sessions of the key; 0 for none. */
  sessionsCut({ sql }: Tx, hash: string): number {
    return this.#key(sql, hash)?.sessionsCut ?? 0;
  }

  /** New secrets count from this turn on, and those that are not among them are none; says so once. */
  setSecrets(desk: Tx, hash: string, secrets: KeySecrets, by?: KeyRotation): void {
    this.#outdate(hash);
    const [newest, second] = secrets ?? [];
    desk.storage.transactionSync(() => {
      updateKeySecrets(desk.sql, hash, secrets);
      if (by !== undefined && by.sessionsCut !== null) {
        cutSessions(desk.sql, hash, by.sessionsCut);
        this.#known.delete(hash);
      }
      if (newest === undefined || second === undefined || by === undefined) return;
      const { retiresAt } = second;
      const data = {
        others_end_at: retiresAt === null ? null : timestamp(retiresAt),
        sessions_ended: by.sessionsCut !== null,
      };
      const { keyId: subject, actor } = by;
      addEvent(desk, { type: "key.rotated", actor, subject, data }, [newest.hash]);
    });
    this.#amend(hash, { secrets });
  }

  async #learn(hash: string): Promise<Refusal | null> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const question = { hash, isStale: false };
      // oxlint-disable-next-line no-await-in-loop -- asked again after a change
      const said = await this.#asked(question, (register) => register.identify(null));
      // Its copy: an answer of another object, passed on, would be held open until our caller disposes of it.
      if (!said.ok) return refuse(said.failure);
      if (question.isStale) continue;
      const desk = this.#keeping.desk();
      if (desk === null) return refuse({ kind: "storage_unavailable" });
      putKey(desk.sql, hash, recordOf(desk, said.value));
      this.#known.delete(hash);
      return null;
    }
    return refuse({ kind: "overloaded" });
  }

  async #asked(question: Question, ask: AskRegister): Promise<Identified> {
    this.#questions.add(question);
    try {
      return await within(ask(this.#keeping.register(question.hash)), REGISTER_TIMEOUT_MS);
    } catch (error) {
      logWarning("key_register_unreachable", { reason: reasonOf(error) });
      return refuse(storageFailure(error));
    } finally {
      this.#questions.delete(question);
    }
  }

  #outdate(hash: string): void {
    for (const question of this.#questions) question.isStale ||= question.hash === hash;
  }

  /** Asks what is true of the key by now. Noted before, so that it is one a minute however slow the register is. */
  #refresh(desk: Tx, hash: string, ask: AskRegister): void {
    this.#check(desk, hash, desk.clockMs);
    this.#keeping.waitUntil(this.#refreshed(hash, ask));
  }

  #check({ sql }: Tx, hash: string, checkedAt: number): void {
    updateChecked(sql, hash, checkedAt);
    this.#amend(hash, { checkedAt });
  }

  #adopt(desk: Tx, hash: string, { rpmLimit, terms, secrets }: Key): void {
    const before = this.#key(desk.sql, hash)?.record;
    this.setLimit(desk, hash, rpmLimit);
    const knownTerms = before?.terms ?? NO_TERMS;
    if (termsText(terms) !== termsText(knownTerms)) this.setTerms(desk, hash, terms);
    const knownSecrets = before?.secrets ?? null;
    if (secretsText(secrets) !== secretsText(knownSecrets)) this.setSecrets(desk, hash, secrets);
  }

  /** Takes over what the register says now. While it cannot be asked, admissions go on. */
  async #refreshed(hash: string, ask: AskRegister): Promise<void> {
    const question = { hash, isStale: false };
    const said = await this.#asked(question, ask);
    const desk = this.#keeping.desk();
    if (desk === null) return;
    if (said.ok) {
      if (!question.isStale) this.#adopt(desk, hash, said.value);
    } else if (
      said.failure.kind === "invalid_api_key" &&
      this.#key(desk.sql, hash)?.revokedAt === null
    ) {
      forgetActiveKey(desk.sql, hash); // the next request asks again
      this.#known.delete(hash);
    }
  }

  /** The clock jumped back: what lies in its future counts as admitted now. */
  #clamp({ storage, clockMs }: Tx, hash: string, { number, record, window }: KnownKey): void {
    const lagMs = window.lagMs(clockMs);
    logAlert("clock_stepped_back", { key_id: record?.keyId ?? null, lag_ms: lagMs });
    clampKey(storage, number, clockMs);
    window.clamp(clockMs);
    this.#amend(hash, { checkedAt: Math.min(record?.checkedAt ?? 0, clockMs) });
  }

  /** Memory follows what was just written. */
  #amend(hash: string, change: Partial<ActiveKey>): void {
    const key = this.#known.get(hash);
    if (key === undefined || key.record === null) return;
    this.#known.set(hash, { ...key, record: { ...key.record, ...change } });
  }

  #key(sql: SqlStorage, hash: string): KnownKey | null {
    const known = this.#known.get(hash);
    if (known !== undefined) return known;
    const stored = selectKey(sql, hash);
    if (stored === null) return null;
    evictOldest(this.#known, REMEMBERED_MAX);
    this.#known.set(hash, stored);
    return stored;
  }
}

/** What a request hears whose key has that left of its minute. */
export function admittedBy(
  { memory }: Tx,
  { keyId, memberId, scope, terms }: ActiveKey,
  { limit, remaining, resetMs }: RateState,
  shown: PresentedSecret | undefined,
): AdmittedKey {
  const { orgId, priceList } = memory.row;
  return {
    keyId,
    orgId,
    memberId,
    scope,
    limit,
    remaining,
    resetMs,
    ...((isLimited(terms) || shown?.session !== undefined) && { isLimited: true }),
    ...(priceList !== null && { priceList }),
  };
}

function recordOf({ clockMs, memory }: Tx, { orgId, ...said }: Key): ActiveKey {
  assert(orgId === memory.row.orgId, "a key is admitted by its own organization's wallet");
  return { ...said, checkedAt: clockMs };
}
