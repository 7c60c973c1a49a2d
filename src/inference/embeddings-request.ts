import * as z from "zod/mini";
import type { Result } from "../lib/failure.ts";
import { parseBody } from "../http/parse-body.ts";
import { user, withoutNulls } from "./chat-request.ts";

/** OpenAI's bounds (openapi.yaml, CreateEmbeddingRequest). */
export const INPUTS_MAX = 2048;
const DIMENSIONS_MAX = 100_000;
const TOKEN_ID_MAX = 10_000_000;

const token = z.int().check(z.minimum(0), z.maximum(TOKEN_ID_MAX));
const text = z.string().check(z.minLength(1));
const inputs = [z.minLength(1), z.maxLength(INPUTS_MAX)] as const;
const input = z.union([
  text,
  z.array(text).check(...inputs),
  z.array(token).check(...inputs),
  z.array(z.array(token).check(z.minLength(1), z.maxLength(8192))).check(...inputs),
]);
export const embeddingsBody = z.looseObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  input,
  encoding_format: z.optional(z.enum(["float", "base64"])),
  dimensions: z.optional(z.int().check(z.minimum(1), z.maximum(DIMENSIONS_MAX))),
  user: z.optional(user),
});

export type EmbeddingsBody = z.infer<typeof embeddingsBody>;

/** Parses the body of POST /v1/embeddings. `null` means absent. Failures: 400 with `param`. */
export function parseEmbeddingsRequest(value: object): Result<EmbeddingsBody> {
  return parseBody(embeddingsBody, withoutNulls(value));
}
