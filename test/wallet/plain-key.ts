import { micros } from "../../src/shared/money.ts";
import { BUDGET_PERIODS } from "../../src/shared/key-terms.ts";
import { TokenWindow } from "../../src/money/wallet/rules/token-window.ts";
import type { KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import {
  meterAmountsAt,
  changeMeter,
  dollarFieldLimit,
  createMeterWithoutHolds,
  adjustMeterHolds,
} from "../../src/money/wallet/rules/limits.ts";
import type { CountedRow, Meter } from "../../src/money/wallet/rules/limits.ts";
import { bucketAt } from "../../src/shared/budget-meter.ts";
import type { OpenHold } from "../../src/money/wallet/rules/open-holds.ts";
import { periodOf } from "../../src/shared/period.ts";
import type { Period } from "../../src/shared/period.ts";
import type { Content, KeyLimits } from "./wallet-commands.ts";

const WINDOW_MS = 60_000;
/** The key whose limits a script sets. All other requests are of a key without limits. */
export const LIMITED_KEY = "key_limited";

/** The limited key in memory: the real rules, and independent records of charges and grants. */
export class PlainKey {
  /** The spend of each period, one of which has the budget. Empty without a budget. */
  meters: readonly Meter[];
  readonly #limits: KeyLimits;
  readonly #rows: ReadonlyMap<string, KnownHold>;
  readonly #window = new TokenWindow();
  /** Charges by day, week and month of admission, and in total. */
  readonly #spent = new Map<string, number>();
  /** Tokens of each grant: reserved first, then used. */
  readonly #tokens = new Map<string, { readonly at: number; count: number }>();

  constructor(limits: KeyLimits, rows: ReadonlyMap<string, KnownHold>, now: number) {
    this.#limits = limits;
    this.#rows = rows;
    this.meters = limits.budget === null ? [] : metersOf(limits, now);
  }

  /** Returns the granted tokens of the minute, null without a limit, or the kind of rejection. */
  decide({ tokens: { least, extra }, hasCap }: Content, now: number): number | null | string {
    const { tpm } = this.#limits;
    if (tpm === null) return null;
    const most = least + extra;
    const share = (free: number): number => (hasCap ? free : Math.floor(free / 2));
    const verdict = this.#window.decide(tpm, { least: hasCap ? most : least, most, share }, now);
    if (verdict.kind === "granted") return verdict.tokens;
    return verdict.kind === "never" ? "refused tokens_over_limit" : "refused tokens_limited";
  }

  granted(id: string, tokens: number | null, now: number): void {
    if (tokens === null) return;
    this.#window.add(id, now, tokens);
    this.#tokens.set(id, { at: now, count: tokens });
    const { tpm } = this.#limits;
    must(this.#counted(now) <= (tpm ?? Infinity), "K2 tokens of a minute");
  }

  opened(hold: OpenHold): void {
    for (const meter of this.meters) adjustMeterHolds(meter, hold, 1);
  }

  closed(hold: OpenHold): void {
    for (const meter of this.meters) adjustMeterHolds(meter, hold, -1);
  }

  charged(id: string, row: CountedRow): void {
    const { amounts, period } = row;
    this.#counts(id, amounts.tokens);
    for (const slot of slotsOf(period)) {
      this.#spent.set(slot, (this.#spent.get(slot) ?? 0) + amounts.dollars);
    }
    this.meters = this.meters.map((meter) => changeMeter(meter, row)?.updated ?? meter);
  }

  voided(id: string): void {
    this.#counts(id, 0);
  }

  /** Returns the budget minus charges and open holds in a period. */
  free(period: Period): number {
    const { budget, period: name } = this.#limits;
    if (budget === null) return Infinity;
    const held = [...this.#rows.values()]
      .filter((row) => row.state === "held" && row.keyId === LIMITED_KEY)
      .filter((row) => name === null || row.period[name] === period[name])
      .reduce((sum, row) => sum + (row.granted ?? 0), 0);
    return budget - (this.#spent.get(slotOf(name, period)) ?? 0) - held;
  }

  /** Returns the state that the object also reports. */
  state(now: number): Record<string, unknown> {
    const { tpm } = this.#limits;
    return {
      spent: this.#read(now),
      tokens: tpm === null ? null : this.#window.rateState(tpm, now).remaining,
    };
  }

  /** Throws if an invariant doesn't hold. */
  check(now: number): void {
    const { budget, period: name } = this.#limits;
    for (const [slot, spent] of this.#spent) {
      if (slot.startsWith(`${name ?? "total"} `)) must(spent <= (budget ?? Infinity), `K1 ${slot}`);
    }
    const read = this.#read(now);
    const spent = this.#spent.get(slotOf(name, periodOf(now))) ?? 0;
    must(read === null || read === spent, "K3 a key's period");
  }

  #read(nowMs: number): number | null {
    const limited = this.meters.find(({ budget }) => budget.amount !== Infinity);
    const at = { period: periodOf(nowMs), nowMs };
    return limited === undefined ? null : meterAmountsAt(limited, at).settled;
  }

  #counts(id: string, count: number): void {
    const one = this.#tokens.get(id);
    if (one === undefined) return;
    this.#window.setActualTokens(id, count);
    one.count = count;
  }

  #counted(now: number): number {
    return [...this.#tokens.values()]
      .filter(({ at }) => at > now - WINDOW_MS)
      .reduce((sum, { count }) => sum + count, 0);
  }
}

function metersOf({ budget, period }: KeyLimits, nowMs: number): Meter[] {
  const owner = { scope: "key", subject: LIMITED_KEY } as const;
  return [...BUDGET_PERIODS, "total"].map((window) => {
    const amount = budget === null || window !== (period ?? "total") ? null : micros(budget);
    const bucket = bucketAt(window, { period: periodOf(nowMs), nowMs });
    return createMeterWithoutHolds(
      dollarFieldLimit(owner, window, { amount, tally: [[bucket, 0]] }),
    );
  });
}

function slotOf(name: KeyLimits["period"], period: Period): string {
  return name === null ? "total all" : `${name} ${period[name]}`;
}

function slotsOf(period: Period): string[] {
  return [null, "day", "week", "month"].map((name) => slotOf(name as KeyLimits["period"], period));
}

function must(holds: boolean, invariant: string): void {
  if (!holds) throw new Error(`broken: ${invariant}`);
}
