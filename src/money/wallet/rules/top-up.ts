import type { AutoTopUp, DisabledReason, TopUpEnd } from "../../../shared/contracts/payments.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { HOUR_MS } from "../../../shared/clock.ts";

/** How long nothing is tried after the so many-th decline in a row; after one more it is switched off. */
const PAUSES_MS = [HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS];

/** How automatic purchases stand. Times in Unix ms. */
export type TopUpState = {
  /** The one that is under way. `isTold`: who executes it has heard of it. */
  readonly open: {
    readonly id: string;
    readonly amountMicro: Micros;
    readonly wantedAt: number;
    readonly month: string;
    readonly isTold: boolean;
  } | null;
  /** The UTC month that `monthMicro` was wanted in, as YYYY-MM. */
  readonly month: string;
  readonly monthMicro: Micros;
  /** The UTC day that `dayMicro` was wanted in, paid or not, as YYYY-MM-DD; none in older rows. */
  readonly day?: string;
  readonly dayMicro?: Micros;
  readonly pausedUntil: number | null;
  /** In a row. */
  readonly declines: number;
  /** The month whose bound was told of. */
  readonly cappedMonth: string | null;
  readonly disabledReason: DisabledReason | null;
};
export const NO_TOP_UP: TopUpState = {
  open: null,
  month: "",
  monthMicro: micros(0),
  pausedUntil: null,
  declines: 0,
  cappedMonth: null,
  disabledReason: null,
};

type Standing = {
  readonly setting: AutoTopUp | null;
  readonly balance: Micros;
  readonly owed: Micros;
  /** A request was refused for want of balance. */
  readonly isShort: boolean;
  readonly month: string;
  readonly day: string;
  /** What may be wanted in a day, but for its first. */
  readonly mostADay: number;
  readonly nowMs: number;
};

/** Whether one is wanted now; `capped`: it would be, but for the month's bound. */
export function decideTopUp(state: TopUpState, at: Standing): "none" | "capped" | "wanted" {
  const { setting, balance, owed, isShort, month, nowMs } = at;
  if (setting === null || state.open !== null || owed > 0) return "none";
  if (balance >= setting.belowMicro && !isShort) return "none";
  if (state.pausedUntil !== null && nowMs < state.pausedUntil) return "none";
  const today = dayOf(state, at.day);
  if (today > 0 && today + setting.amountMicro > at.mostADay) return "none";
  const isWithin = monthOf(state, month) + setting.amountMicro <= setting.mostPerMonthMicro;
  return isWithin ? "wanted" : "capped";
}

/** What was wanted in a month, and not given back since. */
export function monthOf(state: TopUpState, month: string): Micros {
  return state.month === month ? state.monthMicro : micros(0);
}

const dayOf = (state: TopUpState, day: string): number =>
  state.day === day ? (state.dayMicro ?? 0) : 0;

/** The wish and its pause are one: who is ended in between frees nothing. */
export function wantTopUp(
  state: TopUpState,
  wish: { readonly id: string; readonly amountMicro: Micros; readonly wantedAt: number },
  { month, day }: { readonly month: string; readonly day: string },
): TopUpState {
  return {
    ...state,
    open: { ...wish, month, isTold: false },
    month,
    monthMicro: micros(monthOf(state, month) + wish.amountMicro),
    day,
    dayMicro: micros(dayOf(state, day) + wish.amountMicro),
    pausedUntil: wish.wantedAt + HOUR_MS,
  };
}

/** The one under way was paid: the next may follow at once. */
export function creditTopUp(state: TopUpState, id: string): TopUpState {
  if (state.open?.id !== id) return state;
  return { ...state, open: null, pausedUntil: null, declines: 0 };
}

/** It ended unpaid: the month has its amount again, and the next waits, or there is none. */
export function endTopUp(
  state: TopUpState,
  id: string,
  { end, nowMs }: { readonly end: TopUpEnd; readonly nowMs: number },
): TopUpState {
  const { open } = state;
  if (open?.id !== id) return state;
  const isOfMonth = open.month === state.month;
  const monthMicro = isOfMonth ? micros(state.monthMicro - open.amountMicro) : state.monthMicro;
  const after = { ...state, open: null, monthMicro };
  if (end.kind === "hard") return { ...after, disabledReason: end.reason };
  const pause = PAUSES_MS[state.declines];
  const declines = state.declines + 1;
  if (pause === undefined) return { ...after, declines, disabledReason: "card_declined" };
  return { ...after, declines, pausedUntil: nowMs + pause };
}

/** A person switched it on again: what it was off for is forgotten, a pause is not. */
export function enableTopUp(state: TopUpState): TopUpState {
  if (state.disabledReason === null) return state;
  return { ...state, disabledReason: null, declines: 0 };
}
