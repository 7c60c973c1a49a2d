import type { Failure } from "../failure.ts";
import type { BudgetScope } from "../budgets.ts";
import { timestamp } from "../clock.ts";
import { shortenModelName } from "../issue-text.ts";
import type { PolicyScope } from "../policy.ts";
import type { FailureOfKind } from "./error-response.ts";
import { forbiddenResponse } from "./error-response.ts";

type Why = Extract<Failure, { readonly kind: "login_refused" }>["why"];

const REFUSED: Readonly<Record<Why, string>> = {
  expired: "This login took longer than ten minutes or was already completed. Please try again.",
  denied: "The login was declined.",
  refused: "The identity provider's response was invalid. Please try again.",
  unknown: "No account has this login.",
  unproven:
    "Your email address isn't verified. Please verify it at your identity provider, or use another login.",
  other_person: "This login belongs to another person.",
  too_many: "Too many sign-ups at the moment. Please try again later.",
};

export const LOGIN_ERROR_RESPONSES = {
  no_console_session: () => ({
    status: 401,
    type: "no_console_session",
    message: "You aren't logged in, or your console session has ended. Please log in.",
  }),
  origin_not_allowed: () =>
    forbiddenResponse("origin_not_allowed", "This request did not come from the console."),
  login_refused: ({ why }: { readonly why: Why }) =>
    forbiddenResponse("login_refused", REFUSED[why]),
  read_only: () =>
    forbiddenResponse(
      "read_only",
      "This session can only view the organization. Exit the session to make changes.",
    ),
  login_too_old: () =>
    forbiddenResponse(
      "login_too_old",
      "This change requires a login within the last ten minutes. Please log in again.",
    ),
  issuer_unreachable: () => ({
    status: 503,
    type: "api_error",
    code: "issuer_unreachable",
    message: "The identity provider does not respond. Please retry.",
    headers: { "retry-after": "1" },
  }),
};

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

export const POLICY_ERROR_RESPONSES = {
  model_not_allowed: ({ model }: FailureOfKind<"model_not_allowed">) =>
    forbiddenResponse(
      "model_not_allowed",
      `This API key can't use the model '${shortenModelName(model)}'.`,
      { param: "model" },
    ),
  route_not_allowed: ({ model, scope, field }: FailureOfKind<"route_not_allowed">) =>
    forbiddenResponse(
      "route_not_allowed",
      `The policy of ${OWNERS[scope]} ('${field}') allows no route to the model '${shortenModelName(model)}'. Use another model, or change the policy.`,
      {
        param: "model",
        extra: { scope, policy_field: field },
      },
    ),
  paused: ({ pauseId, scope, reason, until }: FailureOfKind<"paused">) => {
    const end = until === null ? null : timestamp(until);
    const why = reason === null ? "" : ` Reason: ${reason}`;
    const message = `New requests of ${PAUSED[scope ?? "session"]} are paused${end === null ? "" : ` until ${end}`}.${why}`;
    const extra = {
      pause_id: pauseId,
      ...(scope !== null && { scope }),
      ...(reason !== null && { reason }),
      ...(end !== null && { until: end }),
    };
    return forbiddenResponse("paused", message, { extra });
  },
};
