import * as z from "zod/mini";
import { success } from "../../../lib/failure.ts";
import type { Result } from "../../../lib/failure.ts";
import { parseBody } from "../../../http/parse-body.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { textOf } from "../../../providers/json-value.ts";
import { wireUsage } from "../../../providers/wire-usage.ts";
import { chatBody, withoutNulls } from "../../chat-request.ts";
import type { ChatBody } from "../../chat-request.ts";
import type { Asked, Door, Receipt } from "../door.ts";
import { textStream } from "./text-stream.ts";

/** POST /v1/completions: OpenAI's legacy text completions, answered by chat models. */
export const completionsDoor: Door = {
  name: "completions",
  path: "/v1/completions",
  dialect: null,
  idPrefix: "cmpl-",
  parse,
};

/** OpenAI's own default (openapi.yaml, CreateCompletionRequest). */
const MAX_TOKENS_DEFAULT = 16;

const chat = chatBody.shape;
const text = z.string().check(z.minLength(1));
/** What changes the answer and a chat model cannot do is refused, unless it says what is so anyway. */
export const completionsBody = z.looseObject({
  model: chat.model,
  prompt: z.union(
    [text, z.array(text).check(z.length(1, "must hold one text: send a request for each"))],
    {
      error: "must be a text, or a list of one: send a request for each, and no token ids",
    },
  ),
  max_tokens: chat.max_tokens,
  temperature: chat.temperature,
  top_p: chat.top_p,
  n: chat.n,
  stop: chat.stop,
  seed: chat.seed,
  frequency_penalty: chat.frequency_penalty,
  presence_penalty: chat.presence_penalty,
  logit_bias: chat.logit_bias,
  stream: chat.stream,
  stream_options: chat.stream_options,
  user: chat.user,
  echo: z.optional(z.literal(false, { error: "is not supported" })),
  suffix: z.optional(z.literal("", { error: "is not supported" })),
  best_of: z.optional(z.literal(1, { error: "is not supported" })),
  logprobs: z.optional(z.never({ error: "is not supported" })),
});

const KEPT = [
  "temperature",
  "top_p",
  "n",
  "stop",
  "seed",
  "frequency_penalty",
  "presence_penalty",
  "logit_bias",
] as const;

function parse(value: object): Result<Asked> {
  const parsed = parseBody(completionsBody, withoutNulls(value));
  if (!parsed.ok) return parsed;
  const { model, prompt, max_tokens = MAX_TOKENS_DEFAULT, ...given } = parsed.value;
  const content = typeof prompt === "string" ? prompt : (prompt[0] ?? "");
  const request: ChatBody = {
    ...Object.fromEntries(
      KEPT.flatMap((field) => (given[field] === undefined ? [] : [[field, given[field]]])),
    ),
    model,
    messages: [{ role: "user", content }],
    max_tokens,
  };
  const includeUsage = given.stream_options?.include_usage === true;
  return success({
    request: { kind: "chat", body: request },
    user: given.user ?? null,
    dropped: [],
    paramOf: (core) => (core.startsWith("messages") ? "prompt" : core),
    reply:
      given.stream === true
        ? { kind: "stream", stream: (head) => textStream(head, includeUsage) }
        : { kind: "json", json: completion },
    native: null,
  });
}

type Choice = {
  readonly index?: unknown;
  readonly message?: { readonly content?: unknown; readonly refusal?: unknown };
  readonly finish_reason?: unknown;
};

/** What each choice said, a refusal too: the legacy shape has one text. */
function completion(answer: JsonObject, { id, created, model, usage }: Receipt): JsonObject {
  const choices = Array.isArray(answer["choices"]) ? (answer["choices"] as Choice[]) : [];
  return {
    id,
    object: "text_completion",
    created,
    model,
    choices: choices.map(({ index, message, finish_reason }, at) => ({
      text: textOf(message?.content) || textOf(message?.refusal),
      index: typeof index === "number" ? index : at,
      logprobs: null,
      finish_reason: finish_reason ?? null,
    })),
    usage: wireUsage(usage, "chat"),
  };
}
