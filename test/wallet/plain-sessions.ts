import { micros } from "../../src/shared/money.ts";
import {
  amountsOf,
  countIn,
  fieldLimit,
  newMeter,
  reserveIn,
} from "../../src/money/wallet/rules/limits.ts";
import type { CountedRow, Meter } from "../../src/money/wallet/rules/limits.ts";
import type { OpenHold } from "../../src/money/wallet/rules/open-holds.ts";
import { rateWait, refuseDeadSession } from "../../src/money/wallet/rules/hold-guards.ts";
import type { KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import { periodOf } from "../../src/shared/period.ts";
import type { SessionLimits } from "./wallet-commands.ts";

const WINDOW_MS = 60_000;
/** When the wallet was made that the sessions were minted for. */
const MADE_AT = 1;

/** What the rules are told of a session, and apart from them all that it was granted and charged. */
type PlainSession = {
  readonly limits: SessionLimits;
  readonly expiresAt: number;
  endedAt: number | null;
  /** As the rules keep them. */
  readonly log: number[];
  meter: Meter;
  /** As it was. */
  readonly grants: number[];
  spent: number;
};

/** The sessions of the limited key, in memory, by their places in a script. */
export class PlainSessions {
  readonly #all: readonly PlainSession[];
  readonly #rows: ReadonlyMap<string, KnownHold>;

  constructor(all: readonly SessionLimits[], rows: ReadonlyMap<string, KnownHold>, now: number) {
    this.#rows = rows;
    this.#all = all.map((limits, place) => {
      const nothing = { endedAt: null, log: [], grants: [], spent: 0 };
      return { ...nothing, limits, meter: meterOf(place, limits), expiresAt: now + limits.livesMs };
    });
  }

  /** How a session is refused that has come to its end; null for one that lives, and without one. */
  refuse(place: number | null, now: number): string | null {
    const one = this.#at(place);
    if (one === null) return null;
    const { endedAt, expiresAt } = one;
    const here = { madeAt: MADE_AT, cut: 0, endedAt, nowMs: now };
    const refused = refuseDeadSession({ madeAt: MADE_AT, cut: 0, expiresAt }, here);
    if (refused === null) return null;
    must(isOver(one, now), "S5 a session that lives is not refused");
    return `refused ${refused.failure.kind}`;
  }

  /** How one more request is refused that does not fit the session's minute. */
  wait(place: number | null, now: number): string | null {
    const one = this.#at(place);
    if (one === null || one.limits.rpm === null) return null;
    if (rateWait(one.log, one.limits.rpm, now) <= 0) return null;
    must(recent(one, now) >= one.limits.rpm, "S5 a minute with room is not refused");
    return "refused rate_limited";
  }

  meters(place: number | null): readonly Meter[] {
    const one = this.#at(place);
    return one === null ? [] : [one.meter];
  }

  /** What neither a charge nor an open hold has of its budget. */
  free(place: number | null): number {
    const one = this.#at(place);
    if (one === null || one.limits.budget === null) return Infinity;
    return one.limits.budget - one.spent - this.#held(place);
  }

  granted(place: number | null, hold: OpenHold): void {
    const one = this.#at(place);
    if (one === null) return;
    const { admittedAt: now } = hold;
    reserveIn(one.meter, hold, 1);
    must(!isOver(one, now), "S3 a session that is over is granted nothing");
    one.log.push(now);
    one.grants.push(now);
    must(recent(one, now) <= (one.limits.rpm ?? Infinity), "S2 requests of a minute");
  }

  closed(hold: OpenHold): void {
    const one = this.#at(placeOf(hold));
    if (one !== null) reserveIn(one.meter, hold, -1);
  }

  charged(place: number | null, row: CountedRow): void {
    const one = this.#at(place);
    if (one === null) return;
    one.meter = countIn(one.meter, row)?.counted ?? one.meter;
    one.spent += row.amounts.dollars;
  }

  end(place: number, now: number): void {
    const one = this.#at(place);
    if (one !== null) one.endedAt ??= now;
  }

  /** Those that were used and live, as the object lists them. */
  state(now: number): readonly string[] {
    return this.#all.flatMap((one, place) => {
      if (one.grants.length === 0 || isOver(one, now)) return [];
      return `${place} ${this.#spent(place, now)} ${this.#held(place)}`;
    });
  }

  /** Throws when an invariant does not hold. */
  check(): void {
    for (const { limits, spent } of this.#all) must(spent <= (limits.budget ?? Infinity), "S1");
  }

  #spent(place: number, nowMs: number): number {
    const [meter] = this.meters(place);
    return meter === undefined ? 0 : amountsOf(meter, { period: periodOf(nowMs), nowMs }).settled;
  }

  #held(place: number | null): number {
    return [...this.#rows.values()]
      .filter((row) => row.state === "held" && row.session === sessionName(place))
      .reduce((sum, row) => sum + (row.granted ?? 0), 0);
  }

  #at(place: number | null): PlainSession | null {
    return place === null ? null : (this.#all[place] ?? null);
  }
}

function meterOf(place: number, { budget }: SessionLimits): Meter {
  const owner = { scope: "session", subject: sessionName(place) ?? "" } as const;
  const amount = budget === null ? null : micros(budget);
  return newMeter(fieldLimit(owner, "total", { amount, tally: [] }));
}

/** What the ledger calls the session at a place; null without one. */
export function sessionName(place: number | null): string | null {
  return place === null ? null : `ses_${place}`;
}

/** The place of the session that a request is of. */
export function placeOf({ session = null }: Pick<KnownHold, "session">): number | null {
  return session === null ? null : Number(session.slice("ses_".length));
}

function isOver({ endedAt, expiresAt }: PlainSession, now: number): boolean {
  return endedAt !== null || now >= expiresAt;
}

function recent({ grants }: PlainSession, now: number): number {
  return grants.filter((at) => at > now - WINDOW_MS).length;
}

function must(holds: boolean, invariant: string): void {
  if (!holds) throw new Error(`broken: ${invariant}`);
}
