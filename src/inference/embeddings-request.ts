import * as z from "zod";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { parseBody } from "../http/parse-body.ts";
import { user, withoutNulls } from "./chat-request.ts";

/** OpenAI's bounds (openapi.yaml, CreateEmbeddingRequest). */
export const INPUTS_MAX = 2048;
const DIMENSIONS_MAX = 100_000;
const TOKEN_ID_MAX = 10_000_000;

const token = z.int().min(0).max(TOKEN_ID_MAX);
const input = z.union([
  z.string().min(1),
  z.array(z.string().min(1)).min(1).max(INPUTS_MAX),
  z.array(token).min(1).max(INPUTS_MAX),
  z.array(z.array(token).min(1).max(8192)).min(1).max(INPUTS_MAX),
]);
const embeddingsBody = z.looseObject({
  model: z.string().min(1).max(256),
  input,
  encoding_format: z.enum(["float", "base64"]).optional(),
  dimensions: z.int().min(1).max(DIMENSIONS_MAX).optional(),
  user: user.optional(),
});

export type EmbeddingsBody = z.infer<typeof embeddingsBody>;

/** An embeddings request, checked. */
export type EmbeddingsRequest = {
  readonly body: EmbeddingsBody;
  readonly model: string;
  readonly encoding: "float" | "base64";
  readonly user: string | null;
};

/** Parses the body of POST /v1/embeddings. `null` means absent. Failures: 400 with `param`. */
export function parseEmbeddingsRequest(value: object): Result<EmbeddingsRequest> {
  const parsed = parseBody(embeddingsBody, withoutNulls(value));
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  return success({
    body,
    model: body.model,
    encoding: body.encoding_format ?? "float",
    user: body.user ?? null,
  });
}
