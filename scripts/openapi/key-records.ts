import * as z from "zod";
import { KEY_TERMS } from "../../src/shared/key-terms.ts";
import { keyData } from "./openrouter-records.ts";
import { budget, budgetStatus, effectiveBudget } from "./budget-records.ts";
import { dollars, policy, record, time, uuid, loose } from "./fields.ts";

/** Descriptions that the schemas of limits lack. */
const RESPONSE_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  budget_dollars: dollars.nullable().describe("The key's budget; null for no budget."),
  tpm_limit: z.int().nullable().describe("Tokens in any 60 s."),
  max_concurrent: z.int().nullable().describe("Requests that run at the same time."),
  allowed_models: z.array(z.string()).nullable(),
  policy,
  expires_at: time.nullable(),
  budgets: z.array(budget).nullable().describe("Further budgets; null for none."),
  may_hold: z.boolean().nullable().describe("Whether it may place holds and charges; null if not."),
};
type Terms = typeof KEY_TERMS;
type TermSchemas = {
  [Name in keyof Terms as Terms[Name]["field"]]: z.ZodOptional<
    z.ZodType<z.infer<Terms[Name]["schema"]> | null>
  >;
};
const terms = Object.fromEntries(
  Object.values(KEY_TERMS).map(({ field, schema: said }) => [
    field,
    (RESPONSE_SCHEMAS[field] ?? z.nullable(said)).optional(),
  ]),
) as TermSchemas;

const keyFields = {
  id: z.string(),
  member_id: uuid.describe("The key's owner."),
  name: z.string(),
  prefix: z.string(),
  region: z.string(),
  scope: z.enum(["regional", "global"]),
  rpm_limit: z.int(),
  created_at: time,
  last_used_at: time.nullable(),
  revoked: z.boolean(),
  // These fields are present if a key has any limit.
  ...terms,
  spent_dollars: dollars.nullable().optional().describe("Spend in the budget's current period."),
  budgets_used: z
    .record(z.string(), z.number())
    .optional()
    .describe("In lists: the use of each of `budgets` in its window, by ID, up to a minute late."),
};
const minute = z.strictObject({ limit: z.int(), remaining: z.int(), reset_ms: z.int() });
export const key = record("Key", keyFields);
const limits = z.strictObject({
  requests: minute,
  tokens: minute.nullable(),
  concurrent: z
    .array(
      z.strictObject({
        scope: z.enum(["key", "organization"]),
        limit: z.int(),
        running: z.int(),
      }),
    )
    .optional()
    .describe("Limits of requests that run at the same time. Sessions don't see them."),
  budget: z
    .strictObject({
      period: z.enum(["day", "week", "month"]).nullable(),
      spent_dollars: z.number(),
      held_dollars: z.number(),
      left_dollars: z.number(),
      resets_at: time.nullable(),
    })
    .nullable(),
});
const sessionFields = {
  id: z.string(),
  key_id: z.string(),
  created_at: time,
  expires_at: time,
  end_user: z.string().nullable(),
  budget_dollars: dollars.nullable().describe("The session's own budget; null for only the key's."),
  spent_dollars: dollars,
  held_dollars: dollars,
  allowed_models: z.array(z.string()).nullable(),
  budgets: z.array(budget).describe("Further budgets of the session."),
  policy,
  rpm_limit: z.int().nullable(),
  origins: z.array(z.string()).nullable(),
  may_hold: z.boolean().describe("Whether it may place holds and charges."),
  tags: z.record(z.string(), z.string()).describe("The tags of each of its requests."),
};
export const session = record("Session", sessionFields);
export const freshSession = record("FreshSession", {
  ...sessionFields,
  token: z.string().describe("The token itself, only in this response."),
});
export const sessions = loose("Sessions", { sessions: z.array(session) });
export const endedSession = record("EndedSession", { id: z.string(), ended: z.literal(true) });
/** The current state of the calling key's or session's limits. */
const usageFields = {
  limits,
  budgets: z.array(budgetStatus).describe("In the order in which they are checked."),
  effective_budget: effectiveBudget,
};
export const ownKey = z.union([
  record("OwnKey", { ...keyFields, ...usageFields, data: keyData }),
  record("OwnSession", { ...sessionFields, ...usageFields, data: keyData }),
]);
/** A revoked key. While the database is unavailable, it only has the key object's data. */
export const revokedKey = record("RevokedKey", {
  ...keyFields,
  member_id: keyFields.member_id.optional(),
  name: keyFields.name.optional(),
  prefix: keyFields.prefix.optional(),
  created_at: keyFields.created_at.optional(),
  last_used_at: keyFields.last_used_at.optional(),
  revoked: z.literal(true),
});
export const freshKey = record("FreshKey", {
  ...keyFields,
  key: z.string().describe("The key itself, only in this response."),
});
export const freshMemberKey = record("FreshMemberKey", freshKey.shape);
export const rotatedKey = record("RotatedKey", {
  ...keyFields,
  key: z.string().describe("The new secret."),
  others_end_at: time.describe("Time when the key's older secrets end."),
});
export const rotatedMemberKey = record("RotatedMemberKey", rotatedKey.shape);
export const memberKey = record("MemberKey", keyFields);
export const keys = loose("Keys", { keys: z.array(key) });
export const memberKeys = loose("MemberKeys", { keys: z.array(memberKey) });
