import * as z from "zod";
import { count, record } from "./fields.ts";
import { costs } from "./records.ts";

const rank = z.strictObject({
  index: count.describe("The document's position in the request."),
  relevance_score: z.number(),
  document: z.strictObject({ text: z.string() }).optional(),
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
