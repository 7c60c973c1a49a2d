import * as z from "zod";
import { memberLimitsSchema } from "../../src/accounts/organizations/members.route.ts";
import { budgetStatus } from "./budget-records.ts";
import { policy, record } from "./fields.ts";
import { described } from "./operation.ts";
import { member } from "./records.ts";

const limitedMember = record("MemberWithLimits", {
  ...member.shape,
  policy,
  budgets: z.array(budgetStatus).describe("Budgets of all its keys together."),
});

/** The operations of limits. */
export const LIMIT_OPERATIONS = {
  "GET /v1/members/{id}": described("Read a member and its limits", { 200: limitedMember }),
  "PATCH /v1/members/{id}": described("Change a member's limits, from this response on", {
    200: limitedMember,
    body: memberLimitsSchema,
  }),
};
