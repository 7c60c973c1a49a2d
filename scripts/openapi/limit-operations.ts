import * as z from "zod";
import { memberLimitsSchema } from "../../src/accounts/organizations/organizations.route.ts";
import { BUDGET_SCOPES } from "../../src/shared/budgets.ts";
import { pauseSchema } from "../../src/shared/pauses.ts";
import { budgetStatus } from "./budget-records.ts";
import { policy, record, time } from "./fields.ts";
import { described } from "./operation.ts";
import { ended } from "./people-records.ts";
import { actor, member } from "./records.ts";

const limitedMember = record("MemberWithLimits", {
  ...member.shape,
  policy,
  budgets: z.array(budgetStatus).describe("Budgets of all its keys together."),
});

const pause = record("Pause", {
  id: z.string().describe("The ID of the pause."),
  scope: z.enum(BUDGET_SCOPES),
  subject: z.string().describe("The ID that is paused, or an end user's `external_id`."),
  reason: z.string(),
  until: time.nullable().describe("Null until someone ends it."),
  stop_running: z.boolean().describe("Whether running requests end within 15 s."),
  source: z.enum(["member", "operator", "budget"]),
  budget_id: z.string().optional().describe("Set for a pause by a budget."),
  created_by: actor,
  created_at: time,
});
const PUT = {
  201: pause,
  200: pause,
  description:
    "From the response on, all regions reject new requests of the organization, member, key, session or end user with 403 `paused`. Running requests continue, unless `stop_running` is true. `id` may be left out for the organization. If it is already paused, this changes the reason, or moves the end to a later time, and returns 200.",
  body: pauseSchema,
  errors: ["conflict", "not_found", "too_many_pauses"],
};
const LISTED = { 200: z.strictObject({ pauses: z.array(pause) }) };

/** The operators' operations of pauses. */
export const OPERATOR_PAUSES = {
  "GET /orgs/{id}/pauses": described("List an organization's pauses", LISTED),
  "POST /orgs/{id}/pauses": described("Pause an organization, a member, a key or a session", PUT),
  "DELETE /orgs/{id}/pauses/{pause_id}": described("End a pause", { 200: ended }),
};

export const LIMIT_OPERATIONS = {
  "GET /v1/pauses": described("List pauses, oldest first", {
    ...LISTED,
    description: "The role `member` sees the pauses that stop its own requests.",
  }),
  "POST /v1/pauses": described(
    "Pause all new requests of the organization, a member, a key, a session or an end user",
    {
      ...PUT,
      errors: [...PUT.errors, "role_required"],
    },
  ),
  "DELETE /v1/pauses/{id}": described("End a pause, from this response on", {
    200: ended,
    errors: ["operator_pause"],
  }),
  "GET /v1/members/{id}": described("Read a member and its limits", { 200: limitedMember }),
  "PATCH /v1/members/{id}": described("Change a member's limits, from this response on", {
    200: limitedMember,
    body: memberLimitsSchema,
  }),
};
