import type { Failure } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import type { Micros } from "../../src/shared/money.ts";
import { refuseInvalidHoldId } from "../../src/money/wallet/rules/hold-guards.ts";
import {
  balanceAfterCredit,
  decideHold,
  decideSettlement,
  findStoredHoldResult,
  findStoredSettlement,
} from "../../src/money/wallet/rules/ledger.ts";
import type { HoldDecisionInput, KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import {
  removeOpenHold,
  findDueHolds,
  createHoldTotals,
  freeBalance,
  addOpenHold,
} from "../../src/money/wallet/rules/open-holds.ts";
import type { OpenHold } from "../../src/money/wallet/rules/open-holds.ts";
import { periodOf } from "../../src/shared/period.ts";
import type { Period } from "../../src/shared/period.ts";
import {
  changeMeter,
  collectDollarLimits,
  findFreeAmountForCharge,
  adjustMeterHolds,
} from "../../src/money/wallet/rules/limits.ts";
import type { CountedRow, Meter } from "../../src/money/wallet/rules/limits.ts";
import { PlainIdempotency } from "./plain-idempotency.ts";
import { LIMITED_KEY, PlainKey } from "./plain-key.ts";
import { PlainSessions, placeOf, sessionName } from "./plain-sessions.ts";
import { tombstone } from "./plain-tombstone.ts";
import { newPlainUser, readSpend } from "./plain-users.ts";
import type { PlainUser } from "./plain-users.ts";
import type { Content, KeyLimits, Quotas, SessionLimits } from "./wallet-commands.ts";

const HOLD_TTL_MS = 1_200_000;
const MODEL = "acme/one";

/** The limits of a wallet's end users, of its limited key and of that key's sessions. */
type PlainLimits = {
  readonly quotas: Quotas;
  readonly key: KeyLimits;
  readonly sessions: readonly SessionLimits[];
};

/** For a session, a used-up key budget is reported as a low balance. */
function shownKind(failure: Failure, session: number | null): string {
  const isOfKey = failure.kind === "key_budget_exceeded" && failure.session !== true;
  return session !== null && isOfKey ? "balance_too_low" : failure.kind;
}

/** The wallet in memory: the real rules over Maps, and a record of all events. */
export class PlainWallet {
  readonly totals = createHoldTotals();
  readonly rows = new Map<string, KnownHold>();
  readonly users = new Map<string, PlainUser>();
  readonly credits = new Map<string, { amount: number; balance: number }>();
  readonly ledger: number[] = [];
  /** Independent of the rules: charges by user and period, postings and grants by ID. */
  readonly spent = new Map<string, number>();
  readonly allowance = new Map<string, number>();
  readonly postings = new Map<string, number>();
  readonly voidedUnseen = new Set<string>();
  readonly wronglyGranted = new Set<string>();
  cost = 0;
  charged = 0;
  shortfall = 0;
  now: number;
  readonly quotas: Quotas;
  readonly idempotency: PlainIdempotency;
  readonly key: PlainKey;
  readonly sessions: PlainSessions;

  constructor(now: number, { quotas, key, sessions }: PlainLimits) {
    this.now = now;
    this.quotas = quotas;
    this.key = new PlainKey(key, this.rows, now);
    this.sessions = new PlainSessions(sessions, this.rows, now);
    this.idempotency = new PlainIdempotency(this.rows);
  }

  hold(id: string, content: Content): string {
    this.#expire();
    return this.sessions.refuse(content.session, this.now) ?? this.#hold(id, content);
  }

  #hold(id: string, content: Content): string {
    const { named, user, isLimited, hasCap, session } = content;
    const wrong = refuseInvalidHoldId(id, this.now);
    if (wrong !== null) return `refused ${wrong.failure.kind}`;
    const least = micros(content.least);
    const most = micros(content.least + content.extra);
    const known = this.rows.get(id);
    const sameHold = { id, least, most, externalId: content.user };
    const again = known === undefined ? null : findStoredHoldResult(known, sameHold);
    if (again !== null) {
      return again.ok ? `granted ${again.value}` : `refused ${again.failure.kind}`;
    }
    const lapsed = this.idempotency.checkReuse(named, this.now);
    if (!lapsed.ok) return `refused ${lapsed.failure.kind}`;
    const tokens = this.#minutes(content);
    if (typeof tokens === "string") return tokens;
    const endUser = user === null ? null : this.#user(user);
    const period = periodOf(this.now);
    const sure = upperBoundMinimum(content);
    const meters = this.#meters(isLimited, session, endUser);
    const limits = collectDollarLimits(meters, { period, nowMs: this.now });
    const amounts = { least, sure, most, hasCap, limits };
    const free = this.#free(content, period);
    const granted = decideHold(this.totals, amounts);
    // A budget gets no grants by estimate.
    const hasBudget = this.#meters(isLimited, session, null).some(
      (one) => one.budget.amount !== Infinity,
    );
    const needed = hasBudget ? sure : least;
    mustBeSound(granted.ok ? granted.value : null, amounts, { free, needed });
    if (!granted.ok) return `refused ${shownKind(granted.failure, session)}`;
    this.#granted(id, content, { granted: granted.value, endUser, tokens, lapsed: lapsed.value });
    return `granted ${granted.value}`;
  }

  /**
   * Returns the granted tokens of the key's minute, or the kind of rejection, also by its session's
   * limit.
   */
  #minutes(content: Content): number | null | string {
    const late = this.sessions.wait(content.session, this.now);
    return late ?? (content.isLimited ? this.key.decide(content, this.now) : null);
  }

  settle(id: string, amount: number, tokens: number): string {
    this.#expire();
    const known = this.rows.get(id);
    if (known === undefined) return "unknown";
    const again = findStoredSettlement(known);
    if (again !== null) {
      return again.kind === "settled" ? `settled ${again.charged} ${again.shortfall}` : again.kind;
    }
    const cost = micros(amount);
    const endUser = known.externalId === null ? null : this.#user(known.externalId);
    const isLimited = known.keyId === LIMITED_KEY;
    const meters = this.#meters(isLimited, placeOf(known), endUser);
    const at = { period: known.period, nowMs: this.now };
    const isLate = !this.totals.holds.has(id);
    const limitFree = findFreeAmountForCharge(meters, at, { model: MODEL, isLate });
    const posting = decideSettlement(this.totals, { known, cost, limitFree });
    this.#close(id);
    this.#post(0 - posting.charged, 1);
    if (posting.shortfall > 0) this.#post(0, 1);
    this.rows.set(id, { ...known, ...posting, state: "settled" });
    const amounts = { dollars: posting.charged, tokens, requests: 1 };
    const row = { ...at, seq: this.totals.seq, atMs: this.now, models: [MODEL], amounts };
    if (endUser !== null) this.#spend(endUser, known, { ...posting, row });
    if (isLimited) this.key.charged(id, row);
    this.sessions.charged(placeOf(known), row);
    this.postings.set(id, (this.postings.get(id) ?? 0) + 1);
    this.cost += cost;
    this.charged += posting.charged;
    this.shortfall += posting.shortfall;
    return `settled ${posting.charged} ${posting.shortfall}`;
  }

  void(id: string): string {
    this.#expire();
    const known = this.rows.get(id);
    if (known === undefined) {
      this.voidedUnseen.add(id);
      this.rows.set(id, tombstone(id, this.now));
      return "voided";
    }
    if (known.state === "settled") return `settled ${known.charged}`;
    this.#close(id);
    this.rows.set(id, { ...known, state: "voided" });
    this.key.voided(id);
    return "voided";
  }

  credit(reference: string, amount: number): string {
    this.#expire();
    const before = this.credits.get(reference);
    if (before !== undefined) {
      return before.amount === amount ? `balance ${before.balance}` : "refused conflict";
    }
    const balance = balanceAfterCredit(this.totals, micros(amount));
    if (!balance.ok) return `refused ${balance.failure.kind}`;
    this.#post(amount, 1);
    this.credits.set(reference, { amount, balance: balance.value });
    return `balance ${balance.value}`;
  }

  end(session: number): string {
    this.#expire();
    this.sessions.end(session, this.now);
    return "ended";
  }

  tick(ms: number): void {
    this.now += ms;
    this.#expire();
  }

  /** Returns the state that the object also reports. */
  state(): Record<string, unknown> {
    const period = periodOf(this.now);
    const users = [...this.users.values()].map((user) => {
      const { daily, monthly } = readSpend(user, { period, nowMs: this.now });
      return `${user.externalId} ${daily} ${monthly}`;
    });
    const { balance, held, holds, seq } = this.totals;
    const [key, sessions] = [this.key.state(this.now), this.sessions.state(this.now)];
    return { balance, held, openHolds: holds.size, seq, users, key, sessions };
  }

  /** Throws if an invariant doesn't hold. */
  check(): void {
    const { balance, held, holds, seq } = this.totals;
    must(this.ledger.reduce((sum, amount) => sum + amount, 0) === balance, "I1 sum");
    must(this.ledger.length === seq, "I1 gapless");
    must(balance >= 0 && held >= 0 && held <= balance && freeBalance(this.totals) >= 0, "I2");
    const open = [...this.rows.values()].filter((row) => row.state === "held");
    must(open.reduce((sum, row) => sum + (row.granted ?? 0), 0) === held, "I3 held");
    must(open.length === holds.size, "I3 holds");
    for (const [key, spent] of this.spent) {
      must(spent <= this.#quotaOf(key) + (this.allowance.get(key) ?? 0), `I4 ${key}`);
    }
    const period = periodOf(this.now);
    for (const user of this.users.values()) {
      const read = readSpend(user, { period, nowMs: this.now });
      const { daily, monthly } = this.#spentOf(user.externalId, period);
      must(read.daily === daily && read.monthly === monthly, "period");
    }
    for (const count of this.postings.values()) must(count === 1, "I5");
    must(this.wronglyGranted.size === 0, "I6");
    must(this.charged + this.shortfall === this.cost, "I7 and L2");
    this.idempotency.check();
    this.key.check(this.now);
    this.sessions.check();
  }

  /** Lets all holds expire, so that nothing is held. */
  quiesce(): void {
    this.tick(HOLD_TTL_MS + 1);
    must(this.totals.holds.size === 0 && this.totals.held === 0, "L1");
    this.check();
  }

  #granted(
    id: string,
    { least, extra, user, named, isLimited, session }: Content,
    {
      granted,
      endUser,
      tokens,
      lapsed,
    }: {
      readonly granted: Micros;
      readonly endUser: PlainUser | null;
      readonly tokens: number | null;
      readonly lapsed: string | null;
    },
  ): void {
    const period = periodOf(this.now);
    if (endUser !== null) this.users.set(endUser.externalId, endUser);
    const endUserId = endUser?.id ?? null;
    const keyId = isLimited ? LIMITED_KEY : "k";
    const who = { externalId: user, endUserId, keyId, session: sessionName(session) };
    const shared = { id, granted, period, ...who };
    const admittedAt = this.now;
    const hold = { ...shared, admittedAt, expiresAt: admittedAt + HOLD_TTL_MS };
    addOpenHold(this.totals, hold);
    const amounts = { least: micros(least), most: micros(least + extra) };
    const nothing = { charged: micros(0), shortfall: micros(0), failure: null, tokens };
    this.rows.set(id, { ...shared, ...nothing, state: "held", ...amounts, admittedAt });
    this.key.granted(id, tokens, admittedAt);
    for (const meter of endUser?.meters ?? []) adjustMeterHolds(meter, hold, 1);
    this.sessions.granted(session, hold);
    if (isLimited) this.key.opened(hold);
    this.idempotency.granted(id, named, admittedAt);
    this.#lapse(lapsed);
    if (this.voidedUnseen.has(id)) this.wronglyGranted.add(id);
  }

  /** Voids a request whose Idempotency-Key another request takes. */
  #lapse(id: string | null): void {
    if (id !== null) this.void(id);
  }

  #expire(): void {
    for (const one of findDueHolds(this.totals, this.now)) {
      this.#close(one.id);
      this.#post(0, 1);
      const row = this.rows.get(one.id);
      if (row !== undefined) this.rows.set(one.id, { ...row, state: "expired" });
    }
  }

  #close(id: string): void {
    const open = this.totals.holds.get(id);
    if (open !== undefined) this.#released(open);
    removeOpenHold(this.totals, id);
  }

  #released(open: OpenHold): void {
    const user = open.externalId === null ? null : this.#user(open.externalId);
    for (const meter of user?.meters ?? []) adjustMeterHolds(meter, open, -1);
    this.sessions.closed(open);
    if (open.keyId === LIMITED_KEY) this.key.closed(open);
  }

  #meters(isLimited: boolean, session: number | null, user: PlainUser | null): readonly Meter[] {
    const ofKey = isLimited ? this.key.meters : [];
    return [...(user?.meters ?? []), ...ofKey, ...this.sessions.meters(session)];
  }

  #post(amount: number, rows: number): void {
    this.ledger.push(amount);
    this.totals.seq += rows;
    this.totals.balance = micros(this.totals.balance + amount);
  }

  #user(externalId: string): PlainUser {
    return this.users.get(externalId) ?? newPlainUser(externalId, this.quotas, this.now);
  }

  #spend(
    user: PlainUser,
    known: KnownHold,
    posting: { charged: Micros; late: boolean; row: CountedRow },
  ): void {
    const period = periodOf(known.admittedAt);
    user.meters = user.meters.map((meter) => changeMeter(meter, posting.row)?.updated ?? meter);
    this.users.set(user.externalId, user);
    const over = posting.late ? 0 : Math.max(0, posting.charged - (known.granted ?? 0));
    for (const slot of [period.day, period.month]) {
      const key = `${user.externalId} ${slot}`;
      this.spent.set(key, (this.spent.get(key) ?? 0) + posting.charged);
      this.allowance.set(key, (this.allowance.get(key) ?? 0) + over);
    }
  }

  #spentOf(externalId: string, period: { day: string; month: string }) {
    return {
      daily: micros(this.spent.get(`${externalId} ${period.day}`) ?? 0),
      monthly: micros(this.spent.get(`${externalId} ${period.month}`) ?? 0),
    };
  }

  /**
   * Returns the amount that a request could get under all its limits, by the recorded charges and
   * grants.
   */
  #free({ user, isLimited, session }: Content, period: Period): number {
    const ofKey = isLimited ? this.key.free(period) : Infinity;
    const ofSession = this.sessions.free(session);
    const free = Math.min(this.totals.balance - this.totals.held, ofKey, ofSession);
    if (user === null) return free;
    const spent = this.#spentOf(user, period);
    const held = (name: "day" | "month"): number =>
      [...this.rows.values()]
        .filter((row) => row.state === "held" && row.externalId === user)
        .filter((row) => row.period[name] === period[name])
        .reduce((sum, row) => sum + (row.granted ?? 0), 0);
    const { daily, monthly } = this.quotas;
    return Math.min(
      free,
      (daily ?? Infinity) - spent.daily - held("day"),
      (monthly ?? Infinity) - spent.monthly - held("month"),
    );
  }

  #quotaOf(key: string): number {
    const isDay = key.split(" ")[1]?.length === 10;
    return (isDay ? this.quotas.daily : this.quotas.monthly) ?? Infinity;
  }
}

/** The minimum by the upper bound of the prompt. */
export function upperBoundMinimum({ least, extra, sure }: Content): Micros {
  return micros(least + Math.min(extra, sure));
}

/**
 * Checks a grant: between the minimum and maximum, and without a cap at most half of the available
 * amount, if that is enough.
 */
function mustBeSound(
  granted: number | null,
  { most, hasCap }: HoldDecisionInput,
  { free, needed }: { readonly free: number; readonly needed: number },
): void {
  if (granted === null) return must(free < needed || free <= 0, "S6 what fits is granted");
  must(granted >= needed && granted <= most, "a grant is between least and most");
  must(hasCap || granted <= Math.max(needed, free / 2), "half of what is free is left");
}

function must(holds: boolean, invariant: string): void {
  if (!holds) throw new Error(`broken: ${invariant}`);
}
