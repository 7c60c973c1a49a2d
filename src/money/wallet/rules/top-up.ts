import type {
  AutoTopUpSettings,
  TopUpDisabledReason,
  TopUpFailure,
} from "../../../shared/contracts/payments.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { HOUR_MS } from "../../../shared/clock.ts";

const DECLINE_PAUSES_MS = [HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS];

/** The state of automatic top-up. Times are Unix ms. */
export type TopUpState = {
  /** The purchase in progress. `isTold`: the payments object has received the purchase. */
  readonly open: {
    readonly id: string;
    readonly amountMicro: Micros;
    readonly wantedAt: number;
    readonly month: string;
    readonly isTold: boolean;
  } | null;
  readonly month: string;
  readonly monthMicro: Micros;
  /** The day of `dayMicro`. Absent in older rows. */
  readonly day?: string;
  readonly dayMicro?: Micros;
  readonly pausedUntil: number | null;
  readonly declines: number;
  readonly cappedMonth: string | null;
  readonly disabledReason: TopUpDisabledReason | null;
};
export const INITIAL_TOP_UP_STATE: TopUpState = {
  open: null,
  month: "",
  monthMicro: micros(0),
  pausedUntil: null,
  declines: 0,
  cappedMonth: null,
  disabledReason: null,
};

type TopUpConditions = {
  readonly setting: AutoTopUpSettings | null;
  readonly balance: Micros;
  readonly owed: Micros;
  readonly isShort: boolean;
  readonly month: string;
  readonly day: string;
  /** Maximum micro-credits per day. The day's first purchase can exceed it. */
  readonly dailyMaxMicros: number;
  readonly nowMs: number;
};

/** Decides on an automatic purchase. `capped`: the monthly maximum prevents it. */
export function decideTopUp(state: TopUpState, at: TopUpConditions): "none" | "capped" | "wanted" {
  const { setting, balance, owed, isShort, month, nowMs } = at;
  if (setting === null || state.open !== null || owed > 0) return "none";
  if (balance >= setting.belowMicro && !isShort) return "none";
  if (state.pausedUntil !== null && nowMs < state.pausedUntil) return "none";
  const today = topUpsOfDay(state, at.day);
  if (today > 0 && today + setting.amountMicro > at.dailyMaxMicros) return "none";
  const isWithin =
    sumTopUpsOfMonth(state, month) + setting.amountMicro <= setting.mostPerMonthMicro;
  return isWithin ? "wanted" : "capped";
}

/** Returns the month's automatic purchases in micro-credits, without failed ones. */
export function sumTopUpsOfMonth(state: TopUpState, month: string): Micros {
  return state.month === month ? state.monthMicro : micros(0);
}

const topUpsOfDay = (state: TopUpState, day: string): number =>
  state.day === day ? (state.dayMicro ?? 0) : 0;

/** Records a purchase and the pause before the next one. A restart can't skip this pause. */
export function recordTopUpRequest(
  state: TopUpState,
  request: { readonly id: string; readonly amountMicro: Micros; readonly wantedAt: number },
  { month, day }: { readonly month: string; readonly day: string },
): TopUpState {
  return {
    ...state,
    open: { ...request, month, isTold: false },
    month,
    monthMicro: micros(sumTopUpsOfMonth(state, month) + request.amountMicro),
    day,
    dayMicro: micros(topUpsOfDay(state, day) + request.amountMicro),
    pausedUntil: request.wantedAt + HOUR_MS,
  };
}

export function completeTopUp(state: TopUpState, id: string): TopUpState {
  if (state.open?.id !== id) return state;
  return { ...state, open: null, pausedUntil: null, declines: 0 };
}

/** Subtracts a failed purchase from the totals. Pauses or disables automatic top-up. */
export function recordFailedTopUp(
  state: TopUpState,
  id: string,
  { end, nowMs }: { readonly end: TopUpFailure; readonly nowMs: number },
): TopUpState {
  const { open } = state;
  if (open?.id !== id) return state;
  const isOfMonth = open.month === state.month;
  const monthMicro = isOfMonth ? micros(state.monthMicro - open.amountMicro) : state.monthMicro;
  // `day` is the open purchase's day, because only one purchase is open at a time.
  const dayMicro = micros(Math.max(0, (state.dayMicro ?? 0) - open.amountMicro));
  const after = { ...state, open: null, monthMicro, dayMicro };
  if (end.kind === "hard") return { ...after, disabledReason: end.reason };
  const pause = DECLINE_PAUSES_MS[state.declines];
  const declines = state.declines + 1;
  if (pause === undefined) return { ...after, declines, disabledReason: "card_declined" };
  return { ...after, declines, pausedUntil: nowMs + pause };
}

export function enableTopUp(state: TopUpState): TopUpState {
  if (state.disabledReason === null) return state;
  return { ...state, disabledReason: null, declines: 0 };
}
