import type { BudgetScope } from "../budgets.ts";
import { timestamp } from "../clock.ts";
import { shortenedModelName } from "../issue-text.ts";
import type { PolicyScope } from "../policy.ts";
import type { FailureOf } from "./error-response.ts";

const OWNERS: Readonly<Record<PolicyScope, string>> = {
  operator: "the operator",
  organization: "this organization",
  member: "this API key's member",
  key: "this API key",
  session: "this session",
};

const PAUSED: Readonly<Record<BudgetScope, string>> = {
  organization: "this organization",
  member: OWNERS.member,
  key: OWNERS.key,
  session: OWNERS.session,
  end_user: "this end user",
};

export const POLICY_ERRORS = {
  model_not_allowed: ({ model }: FailureOf<"model_not_allowed">) => ({
    status: 403,
    type: "permission_denied",
    code: "model_not_allowed",
    param: "model",
    message: `This API key can't use the model '${shortenedModelName(model)}'.`,
  }),
  route_not_allowed: ({ model, scope, field }: FailureOf<"route_not_allowed">) => ({
    status: 403,
    type: "permission_denied",
    code: "route_not_allowed",
    param: "model",
    message: `The policy of ${OWNERS[scope]} ('${field}') allows no route to the model '${shortenedModelName(model)}'. Use another model, or change the policy.`,
    extra: { scope, policy_field: field },
  }),
  paused: ({ pauseId, scope, reason, until }: FailureOf<"paused">) => {
    const end = until === null ? null : timestamp(until);
    const why = reason === null ? "" : ` Reason: ${reason}`;
    return {
      status: 403,
      type: "permission_denied",
      code: "paused",
      message: `New requests of ${PAUSED[scope ?? "session"]} are paused${end === null ? "" : ` until ${end}`}.${why}`,
      extra: {
        pause_id: pauseId,
        ...(scope !== null && { scope }),
        ...(reason !== null && { reason }),
        ...(end !== null && { until: end }),
      },
    };
  },
};
