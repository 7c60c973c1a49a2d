import * as z from "zod";
import { SEARCHABLE_OBJECT_KINDS } from "../../src/operator/find.store.ts";
import { count, owner, record, time } from "./fields.ts";

export const found = record("Found", {
  data: z.array(
    record("FoundObject", {
      object: z.enum(SEARCHABLE_OBJECT_KINDS),
      id: z.string().describe("For an end user, domain, credit or merchant: its name."),
      name: z.string().nullable().describe("A name, an address or a type, if the object has one."),
      organization: z
        .strictObject({ id: z.string(), slug: z.string(), name: z.string() })
        .nullable(),
    }),
  ),
  has_more: z.boolean().describe("Whether more than 10 objects of a kind match."),
  region: z.string(),
  other_regions: z
    .array(z.string())
    .describe("The regions that can have the object, if this region doesn't."),
  asked_organizations: count.describe(
    "The number of organizations whose wallet or payments were read.",
  ),
  missing: z.array(z.string()).describe("Slugs of organizations that can't be read."),
  next_after: z
    .string()
    .nullable()
    .describe("Send as `after` to continue the search. Null if all organizations were searched."),
});
export const operatorEvents = record("OperatorEvents", {
  events: z.array(
    record("OperatorEvent", {
      id: z.string(),
      created_at: time,
      operator: z.string().describe("The operator's name."),
      act: z.string(),
      organization: owner.nullable(),
      target: z.record(z.string(), z.string()),
      target_name: z
        .string()
        .nullable()
        .describe("The current name of the changed key, or the address of the changed member."),
      details: z
        .record(z.string(), z.unknown())
        .describe("The amounts, limits and reasons of the change."),
      request_id: z.string(),
    }),
  ),
  next_after: z.string().nullable(),
});
