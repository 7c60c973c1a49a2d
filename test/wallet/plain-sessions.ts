import { micros } from "../../src/shared/money.ts";
import {
  meterAmountsAt,
  changeMeter,
  dollarFieldLimit,
  createMeterWithoutHolds,
  adjustMeterHolds,
} from "../../src/money/wallet/rules/limits.ts";
import type { CountedRow, Meter } from "../../src/money/wallet/rules/limits.ts";
import type { OpenHold } from "../../src/money/wallet/rules/open-holds.ts";
import {
  computeRateLimitState,
  refuseInactiveSession,
} from "../../src/money/wallet/rules/hold-guards.ts";
import type { KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import { periodOf } from "../../src/shared/period.ts";
import type { SessionLimits } from "./wallet-commands.ts";

const WINDOW_MS = 60_000;
/** Creation time of the sessions' wallet. */
const MADE_AT = 1;

/** A session's state for the rules, and independent records of its grants and charges. */
type PlainSession = {
  readonly limits: SessionLimits;
  readonly expiresAt: number;
  endedAt: number | null;
  /** As the rules keep them. */
  readonly log: number[];
  meter: Meter;
  /** As they happened. */
  readonly grants: number[];
  spent: number;
};

/** The limited key's sessions in memory, by their position in a script. */
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

  /** Returns the rejection of an ended session, else null. */
  refuse(place: number | null, now: number): string | null {
    const one = this.#at(place);
    if (one === null) return null;
    const { endedAt, expiresAt } = one;
    const here = { madeAt: MADE_AT, cut: 0, endedAt, nowMs: now };
    const refused = refuseInactiveSession({ madeAt: MADE_AT, cut: 0, expiresAt }, here);
    if (refused === null) return null;
    must(isOver(one, now), "S5 a session that lives is not refused");
    return `refused ${refused.failure.kind}`;
  }

  /** Returns the rejection of a request above the session's limit per minute, else null. */
  wait(place: number | null, now: number): string | null {
    const one = this.#at(place);
    if (one === null || one.limits.rpm === null) return null;
    if (computeRateLimitState(one.log, one.limits.rpm, now).remaining > 0) return null;
    must(recent(one, now) >= one.limits.rpm, "S5 a minute with room is not refused");
    return "refused rate_limited";
  }

  meters(place: number | null): readonly Meter[] {
    const one = this.#at(place);
    return one === null ? [] : [one.meter];
  }

  /** Returns the session's budget minus charges and open holds. */
  free(place: number | null): number {
    const one = this.#at(place);
    if (one === null || one.limits.budget === null) return Infinity;
    return one.limits.budget - one.spent - this.#held(place);
  }

  granted(place: number | null, hold: OpenHold): void {
    const one = this.#at(place);
    if (one === null) return;
    const { admittedAt: now } = hold;
    adjustMeterHolds(one.meter, hold, 1);
    must(!isOver(one, now), "S3 a session that is over is granted nothing");
    one.log.push(now);
    one.grants.push(now);
    must(recent(one, now) <= (one.limits.rpm ?? Infinity), "S2 requests of a minute");
  }

  closed(hold: OpenHold): void {
    const one = this.#at(placeOf(hold));
    if (one !== null) adjustMeterHolds(one.meter, hold, -1);
  }

  charged(place: number | null, row: CountedRow): void {
    const one = this.#at(place);
    if (one === null) return;
    one.meter = changeMeter(one.meter, row)?.updated ?? one.meter;
    one.spent += row.amounts.dollars;
  }

  end(place: number, now: number): void {
    const one = this.#at(place);
    if (one !== null) one.endedAt ??= now;
  }

  /** Returns used and active sessions, as the object lists them. */
  state(now: number): readonly string[] {
    return this.#all.flatMap((one, place) => {
      if (one.grants.length === 0 || isOver(one, now)) return [];
      return `${place} ${this.#spent(place, now)} ${this.#held(place)}`;
    });
  }

  /** Throws if an invariant doesn't hold. */
  check(): void {
    for (const { limits, spent } of this.#all) must(spent <= (limits.budget ?? Infinity), "S1");
  }

  #spent(place: number, nowMs: number): number {
    const [meter] = this.meters(place);
    return meter === undefined
      ? 0
      : meterAmountsAt(meter, { period: periodOf(nowMs), nowMs }).settled;
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
  return createMeterWithoutHolds(dollarFieldLimit(owner, "total", { amount, tally: [] }));
}

/** Returns the session's ID in the ledger, or null. */
export function sessionName(place: number | null): string | null {
  return place === null ? null : `ses_${place}`;
}

/** Returns the position of a request's session. */
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
