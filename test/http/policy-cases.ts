import type { Cases } from "./failure-cases.ts";

/** Policies and pauses. */
export const POLICY_CASES = {
  route_not_allowed: [
    [
      {
        kind: "route_not_allowed",
        model: "smart",
        scope: "member",
        field: "allowed_data_regions",
      },
      403,
      {
        type: "permission_denied",
        code: "route_not_allowed",
        param: "model",
        message:
          "The policy of this API key's member ('allowed_data_regions') allows no route to the model 'smart'. Use another model, or change the policy.",
        scope: "member",
        policy_field: "allowed_data_regions",
      },
    ],
  ],
  candidates_required: [
    [
      { kind: "candidates_required" },
      503,
      {
        type: "api_error",
        param: null,
        code: "overloaded",
        message: "The organization's policy is changing. Please retry.",
      },
      { "retry-after": "1" },
    ],
  ],
} satisfies Partial<Cases>;
