import { timestamp } from "../clock.ts";
import { DO_NOT_RETRY, RETRY_SOON } from "./error-response.ts";
import type { ErrorResponse, FailureOf } from "./error-response.ts";

const OWNERS = {
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

export const BUDGET_ERRORS = {
  key_budget_exceeded: keyBudgetExceeded,
  quota_exceeded: quotaExceeded,
  budget_exceeded: (failure: FailureOf<"budget_exceeded">) => {
    const { scope, budgetId, unit, limit, left, held, required, onlyHolds, resetsAt } = failure;
    const [field, unitText] = UNITS[unit];
    const isEndUser = scope === "end_user";
    const end = resetsAt === null ? "" : ` It has room again at ${timestamp(resetsAt)}.`;
    const has = `The budget of ${limit} ${unitText} ${windowText(failure.window)} for ${OWNERS[scope]} has ${left} left`;
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

function keyBudgetExceeded(failure: FailureOf<"key_budget_exceeded">): ErrorResponse {
  const { period, budgetMicro, resetsAt } = failure;
  const owner = failure.session === true ? "session" : "API key";
  const name = period === null ? "budget" : `${PERIOD_NAMES[period]} budget`;
  const end = resetsAt === null ? "It does not reset." : `It resets at ${timestamp(resetsAt)}.`;
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

type ShortageFailure = FailureOf<"key_budget_exceeded"> | FailureOf<"quota_exceeded">;

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
 * Returns an end user's quota error. Clients stop on "You exceeded your current ... quota", so the
 * message omits it if only open holds are in the way.
 */
function quotaExceeded(failure: FailureOf<"quota_exceeded">): ErrorResponse {
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
