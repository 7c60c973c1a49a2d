import * as z from "zod/mini";
import type { Model } from "../catalog/model.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { externalIdSchema } from "./core-request.ts";
import { removeNulls } from "./json-value.ts";
import { createAbilityNeed } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest, RouteNeed } from "./input-kind.ts";
import { PromptTokenCounter } from "./prompt-size.ts";
import type { PromptSize } from "./prompt-size.ts";

/** Accepted values of `input_type`, which Cohere's models require. */
export const COHERE_INPUT_TYPES: ReadonlySet<unknown> = new Set([
  "search_document",
  "search_query",
  "classification",
  "clustering",
]);

const INPUTS_MAX = 2048;
const DIMENSIONS_MAX = 100_000;
const TOKEN_ID_MAX = 10_000_000;
const INPUT_OVERHEAD = 4;

const nonempty = z.string().check(z.minLength(1));
const token = z.int().check(z.minimum(0), z.maximum(TOKEN_ID_MAX));
const lengthChecks = [z.minLength(1), z.maxLength(INPUTS_MAX)] as const;
const anyInput = z.union([
  nonempty,
  z.array(nonempty).check(...lengthChecks),
  z.array(token).check(...lengthChecks),
  z.array(z.array(token).check(z.minLength(1), z.maxLength(8192))).check(...lengthChecks),
]);
export const embeddingsBodySchema = z.looseObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  input: anyInput,
  encoding_format: z.optional(z.enum(["float", "base64"])),
  dimensions: z.optional(z.int().check(z.minimum(1), z.maximum(DIMENSIONS_MAX))),
  input_type: z.optional(z.string().check(z.maxLength(64))),
  user: z.optional(externalIdSchema),
});

export type EmbeddingsBody = z.infer<typeof embeddingsBodySchema>;

/**
 * Parses a request. Keeps unknown fields and `user` in the body, because OpenAI's schema is open.
 */
export function parseEmbeddingsRequest(value: object): Result<ParsedInputRequest<EmbeddingsBody>> {
  const parsed = parseBody(embeddingsBodySchema, removeNulls(value));
  return parsed.ok ? success({ body: parsed.value, user: parsed.value.user ?? null }) : parsed;
}

export const EMBEDDINGS_REQUEST_RULES: InputKindRules<EmbeddingsBody> = {
  size: measureEmbeddingsPrompt,
  needs: listEmbeddingRouteNeeds,
  sizeAdvice: {
    advice: "Send fewer inputs, or request fewer 'dimensions'.",
    param: "input",
  },
};

export function measureEmbeddingsPrompt(body: EmbeddingsBody, model: Model): PromptSize {
  const tally = new PromptTokenCounter(model);
  const inputs = typeof body.input === "string" ? [body.input] : body.input;
  for (const input of inputs) {
    if (typeof input === "number") tally.tokens += 1;
    else if (typeof input === "string") tally.addText(input);
    else tally.tokens += input.length;
    if (typeof input !== "number") tally.overhead += INPUT_OVERHEAD;
  }
  return tally.size();
}

export function listEmbeddingRouteNeeds(body: EmbeddingsBody): readonly RouteNeed[] {
  const inputs = countEmbeddingInputs(body);
  const severalInputs: RouteNeed = {
    param: "input",
    capability: `embed ${inputs} inputs at once`,
    isMetBy: ({ limits }) => inputs <= (limits?.inputs ?? inputs),
  };
  if (body.dimensions === undefined) return [severalInputs];
  return [severalInputs, createAbilityNeed("dimensions", "dimensions", "change its dimensions")];
}

/** Returns the number of vectors: one for a text or a list of tokens, otherwise one per item. */
export function countEmbeddingInputs({ input }: EmbeddingsBody): number {
  return Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
}
