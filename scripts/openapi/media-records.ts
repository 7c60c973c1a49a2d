import * as z from "zod";
import { count, record } from "./fields.ts";
import { costs } from "./records.ts";

const rank = z.strictObject({
  index: count.describe("The document's position in the request."),
  relevance_score: z.number(),
  document: z.strictObject({ text: z.string() }).optional(),
});
export const moderated = record("Moderated", {
  id: z.string(),
  model: z.string(),
  results: z
    .array(
      z.looseObject({
        flagged: z.boolean(),
        categories: z.record(z.string(), z.boolean()),
        category_scores: z.record(z.string(), z.number()),
      }),
    )
    .describe("One for each text, or one for all parts. The categories are the provider's."),
  usage: z.strictObject(costs),
});
export const ranked = record("Ranked", {
  id: z.string(),
  model: z.string(),
  results: z.array(rank).describe("Best first."),
  meta: z.strictObject({
    api_version: z.strictObject({ version: z.string() }),
    billed_units: z.strictObject({
      search_units: count.optional(),
      input_tokens: count.optional(),
    }),
  }),
  usage: z.strictObject({ total_tokens: count, ...costs }),
});
