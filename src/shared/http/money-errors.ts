import { timestamp } from "../clock.ts";
import {
  DO_NOT_RETRY,
  RETRY_SOON,
  forbiddenResponse,
  invalidRequestResponse,
} from "./error-response.ts";
import type { ErrorResponse, FailureOfKind } from "./error-response.ts";

const BUDGET_OWNERS = {
  organization: "your organization",
  member: "the key's member",
  key: "this API key",
  session: "this session",
  end_user: "this end user",
};

const UNITS = {
  dollars: ["micro", "micro-credits"],
  tokens: ["tokens", "tokens"],
  requests: ["requests", "requests"],
} as const;

const PERIOD_NAMES = { day: "daily", week: "weekly", month: "monthly" } as const;

export const BUDGET_ERROR_RESPONSES = {
  key_budget_exceeded: keyBudgetExceeded,
  quota_exceeded: quotaExceeded,
  budget_exceeded: (failure: FailureOfKind<"budget_exceeded">) => {
    const { scope, budgetId, unit, limit, left, held, required, onlyHolds, resetsAt } = failure;
    const [field, unitText] = UNITS[unit];
    const isEndUser = scope === "end_user";
    const end =
      resetsAt === null
        ? ""
        : ` New requests can use this budget again from ${timestamp(resetsAt)}.`;
    const has = `The budget of ${limit} ${unitText} ${windowText(failure.window)} for ${BUDGET_OWNERS[scope]} has ${left} left`;
    const requirement = `this request needs at least ${required}`;
    return {
      status: isEndUser ? 429 : 402,
      type: isEndUser ? "api_error" : "insufficient_balance",
      code: isEndUser ? "end_user_quota_exceeded" : "budget_exceeded",
      message: onlyHolds
        ? `${has}, of which running requests hold ${held}, and ${requirement}. Please retry after 1s.`
        : `${has}, and ${requirement}.${end}`,
      extra: {
        scope,
        budget_id: budgetId,
        window: failure.window,
        [`limit_${field}`]: limit,
        [`left_${field}`]: left,
        [`required_${field}`]: required,
        ...(resetsAt !== null && { resets_at: timestamp(resetsAt) }),
        ...(onlyHolds && { [`held_${field}`]: held }),
      },
      headers: onlyHolds ? RETRY_SOON : DO_NOT_RETRY,
    };
  },
};

function windowText(window: string): string {
  if (window === "total") return "in total";
  if (!window.endsWith("m")) return `per ${window}`;
  const minutes = Number(window.slice(0, -1));
  return minutes === 1 ? "in any minute" : `in any ${minutes} minutes`;
}

function keyBudgetExceeded(failure: FailureOfKind<"key_budget_exceeded">): ErrorResponse {
  const { period, budgetMicro, resetsAt } = failure;
  const owner = failure.session === true ? "session" : "API key";
  const name = period === null ? "budget" : `${PERIOD_NAMES[period]} budget`;
  const end =
    resetsAt === null
      ? "The budget does not reset."
      : `The budget resets at ${timestamp(resetsAt)}.`;
  const { left, extra, headers } = shortageDetails(failure, resetsAt);
  return {
    status: 402,
    type: "insufficient_balance",
    code: "key_budget_exceeded",
    message: failure.onlyHolds
      ? `The ${name} of this ${owner} has ${left}. Please retry after 1s.`
      : `Insufficient credits: the ${name} of this ${owner} has ${left}. ${end}`,
    extra: { budget_micro: budgetMicro, balance_micro: failure.leftMicro, ...extra },
    headers,
  };
}

type ShortageFailure = FailureOfKind<"key_budget_exceeded"> | FailureOfKind<"quota_exceeded">;

function shortageDetails(
  { leftMicro, heldMicro, requiredMicro, onlyHolds, ...failure }: ShortageFailure,
  resetsAt: number | null,
): { readonly left: string } & Required<Pick<ErrorResponse, "extra" | "headers">> {
  const limitMicro = failure.kind === "quota_exceeded" ? failure.quotaMicro : failure.budgetMicro;
  const held = onlyHolds ? `, ${heldMicro} held by requests in progress` : "";
  return {
    left: `${leftMicro} of ${limitMicro} micro-credits left${held}, and this request needs at least ${requiredMicro}`,
    extra: {
      left_micro: leftMicro,
      required_micro: requiredMicro,
      ...(resetsAt !== null && { resets_at: timestamp(resetsAt) }),
      ...(onlyHolds && { held_micro: heldMicro }),
    },
    headers: onlyHolds ? RETRY_SOON : DO_NOT_RETRY,
  };
}

/**
 * Returns an end user's quota error. "You exceeded your current ... quota" stops clients from
 * retrying. An error that only open holds cause omits this text.
 */
function quotaExceeded(failure: FailureOfKind<"quota_exceeded">): ErrorResponse {
  const { period, quotaMicro, onlyHolds, resetsAt } = failure;
  const name = period === "day" ? "daily" : "monthly";
  const { left, extra, headers } = shortageDetails(failure, resetsAt);
  return {
    status: 429,
    type: "api_error",
    code: "end_user_quota_exceeded",
    message: onlyHolds
      ? `The ${name} quota of this end user has ${left}. Please retry after 1s.`
      : `You exceeded your current ${name} quota for this end user: it has ${left}. Raise the quota, wait for its reset at ${timestamp(resetsAt)}, or omit 'user'.`,
    extra: { quota_micro: quotaMicro, ...extra },
    headers,
  };
}

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

export const PAYMENT_ERROR_RESPONSES = {
  hold_not_allowed: ({ owner }: FailureOfKind<"hold_not_allowed">) =>
    forbiddenResponse("hold_not_allowed", HOLD_OWNERS[owner ?? "none"]),
  payment_reversed: ({ owedMicro }: FailureOfKind<"payment_reversed">) => ({
    status: 402,
    type: "insufficient_balance",
    code: "payment_reversed",
    message:
      owedMicro === null
        ? "Payments for these credits were reversed. Paid requests are rejected until the reversal is resolved."
        : `Payments were reversed, so you owe ${owedMicro} micro-credits. Paid requests are rejected until this debt is repaid. Please add credits.`,
    ...(owedMicro !== null && { extra: { owed_micro: owedMicro } }),
    headers: DO_NOT_RETRY,
  }),
  payments_off: () =>
    invalidRequestResponse(
      404,
      "Card payments are disabled in this region. Please ask the operator of this service.",
      { code: "payments_off" },
    ),
  purchase_limit: ({ why, limit, retryAfterMs }: FailureOfKind<"purchase_limit">) => {
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
  purchase_in_progress: ({ purchaseId }: FailureOfKind<"purchase_in_progress">) =>
    invalidRequestResponse(
      409,
      `The saved card is being charged for the purchase '${purchaseId}'. Please wait until the charge has finished.`,
      {
        code: "purchase_in_progress",
        extra: { purchase_id: purchaseId },
        headers: DO_NOT_RETRY,
      },
    ),
};

export function adviseToAddCredits(purchaseId: string | undefined): string {
  return purchaseId === undefined
    ? "Please add credits."
    : `The automatic purchase '${purchaseId}' is in progress. Please retry after 5s.`;
}
