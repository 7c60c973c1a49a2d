import { DO_NOT_RETRY } from "./error-response.ts";
import type { FailureOf } from "./error-response.ts";

const SECONDS_MAX = 2_592_000;

const LIMITS = {
  day: (limit: number) => `An organization can't buy more than ${limit} dollars a day`,
  card_day: (limit: number) => `The saved card can't be charged more than ${limit} dollars a day`,
  first_week: (limit: number) =>
    `A new organization can't buy more than ${limit} dollars a day in its first week`,
  checkouts: (limit: number) => `An organization can't start more than ${limit} checkouts an hour`,
  declines: (limit: number) =>
    `After ${limit} declined payments in a day, purchases are blocked for 24 hours`,
};

const HOLD_OWNERS = {
  none: "This API key can't place holds. Use a key or session with 'may_hold'.",
  merchant: "Only the merchant of this hold can capture or release it.",
  key: "Only the key that placed this hold can do this.",
} as const;

export const PAYMENT_ERRORS = {
  hold_not_allowed: ({ owner }: FailureOf<"hold_not_allowed">) => ({
    status: 403,
    type: "permission_denied",
    code: "hold_not_allowed",
    message: HOLD_OWNERS[owner ?? "none"],
  }),
  payment_reversed: ({ owedMicro }: FailureOf<"payment_reversed">) => ({
    status: 402,
    type: "insufficient_balance",
    code: "payment_reversed",
    message:
      owedMicro === null
        ? "Payments for these credits were reversed. Paid requests are rejected until this is settled."
        : `Payments were reversed, and ${owedMicro} micro-credits are owed. Paid requests are rejected until they are paid. Please add credits.`,
    ...(owedMicro !== null && { extra: { owed_micro: owedMicro } }),
    headers: DO_NOT_RETRY,
  }),
  payments_off: () => ({
    status: 404,
    type: "invalid_request_error",
    code: "payments_off",
    message: "Card payments are disabled in this region. Please ask the operator of this service.",
  }),
  purchase_limit: ({ why, limit, retryAfterMs }: FailureOf<"purchase_limit">) => {
    const seconds = Math.min(SECONDS_MAX, Math.max(1, Math.ceil(retryAfterMs / 1000)));
    return {
      status: 429,
      type: "rate_limit_exceeded",
      code: "purchase_limit",
      message: `${LIMITS[why](limit)}. Please try again later, or ask the operator of this service.`,
      extra: { retry_after: seconds },
      headers: { "retry-after": String(seconds), ...DO_NOT_RETRY },
    };
  },
  purchase_in_progress: ({ purchaseId }: FailureOf<"purchase_in_progress">) => ({
    status: 409,
    type: "invalid_request_error",
    code: "purchase_in_progress",
    message: `The saved card is being charged for the purchase '${purchaseId}'. Please wait until it has finished.`,
    extra: { purchase_id: purchaseId },
    headers: DO_NOT_RETRY,
  }),
};

export function topUpHint(purchaseId: string | undefined): string {
  return purchaseId === undefined
    ? "Please add credits."
    : `The automatic purchase '${purchaseId}' is in progress. Please retry after 5s.`;
}
