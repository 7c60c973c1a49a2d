import type { NumericVariables } from "../../shared/config/config.ts";
import type { PurchaseRequest } from "../../shared/contracts/payments.ts";
import { refuse } from "../../shared/failure.ts";
import type { Failure, Refusal } from "../../shared/failure.ts";
import { MICROS_PER_DOLLAR } from "../../shared/money.ts";
import type { Purchase } from "./purchase.ts";
import { DAY_MS, HOUR_MS, WEEK_MS } from "../../shared/clock.ts";

const CHECKOUTS_AN_HOUR = 5;
/**
 * Maximum declined purchases in 24 hours, across all methods. Then only automatic purchases are
 * allowed.
 */
const DECLINES_A_DAY = 3;

function countsTowardLimits({ state, method }: Purchase): boolean {
  return method !== "auto" && state !== "declined" && state !== "expired";
}

type PurchaseLimit = Extract<Failure, { readonly kind: "purchase_limit" }>;

/** Rejects a purchase above a limit. `recent` contains the purchases of the last 48 hours. */
export function checkPurchaseLimits(
  buying: PurchaseRequest,
  recent: readonly Purchase[],
  { numbers, nowMs }: { readonly numbers: NumericVariables; readonly nowMs: number },
): Refusal | null {
  const { method, amountMicro, orgCreatedAt, isPerson } = buying;
  const since = (ms: number, which: (one: Purchase) => boolean): readonly Purchase[] =>
    recent.filter((one) => one.createdAt > nowMs - ms && which(one));
  const limited = (
    why: PurchaseLimit["why"],
    limit: number,
    within: readonly Purchase[],
    ms: number,
  ) => {
    const oldest = within[0]?.createdAt ?? nowMs;
    return refuse({ kind: "purchase_limit", why, limit, retryAfterMs: oldest + ms - nowMs });
  };
  const dollars = (ones: readonly Purchase[]): number =>
    ones.reduce((sum, one) => sum + one.amountMicro, amountMicro as number) / MICROS_PER_DOLLAR;
  const today = since(DAY_MS, countsTowardLimits);
  if (nowMs - orgCreatedAt < WEEK_MS && dollars(today) > numbers.FIRST_WEEK_DOLLARS_A_DAY) {
    return limited("first_week", numbers.FIRST_WEEK_DOLLARS_A_DAY, today, DAY_MS);
  }
  if (dollars(today) > numbers.PURCHASE_DOLLARS_A_DAY) {
    return limited("day", numbers.PURCHASE_DOLLARS_A_DAY, today, DAY_MS);
  }
  const declined = since(
    DAY_MS,
    (one) => one.state === "declined" && one.error !== "misconfigured",
  );
  if (declined.length >= DECLINES_A_DAY) {
    return limited("declines", DECLINES_A_DAY, declined, DAY_MS);
  }
  if (method === "card") {
    const charged = today.filter((one) => one.method === "card");
    const isOver = !isPerson && dollars(charged) > numbers.CARD_DOLLARS_A_DAY;
    return isOver ? limited("card_day", numbers.CARD_DOLLARS_A_DAY, charged, DAY_MS) : null;
  }
  const started = since(HOUR_MS, (one) => one.method === "checkout");
  if (started.length >= CHECKOUTS_AN_HOUR) {
    return limited("checkouts", CHECKOUTS_AN_HOUR, started, HOUR_MS);
  }
  return null;
}
