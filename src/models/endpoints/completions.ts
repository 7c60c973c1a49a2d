import * as z from "zod/mini";
import { parseBody } from "../../shared/http/parse-body.ts";
import { invalid, success } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { Result, Refusal } from "../../shared/failure.ts";
import type { JsonObject } from "../core/provider.ts";
import type { Chunk, Completion } from "../core/chunk.ts";
import { isOpenRouterClient } from "../core/gateway-fields.ts";
import { toOpenAiUsage } from "../core/openai-usage.ts";
import { chatBodySchema, CHOICES_MAX } from "../core/core-request.ts";
import { removeNulls } from "../core/json-value.ts";
import type { ChatBody } from "../core/core-request.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  Receipt,
  ResponseHead,
  StreamWriter,
} from "../core/endpoint-adapter.ts";
import {
  splitAtPlaceholder,
  selectUsageChunks,
  TEXT_PLACEHOLDER,
  OpenAiStreamWriter,
} from "./openai-events.ts";
import type { EventTemplate, UsageChunkSelection } from "./openai-events.ts";

export const completionsEndpoint: EndpointAdapter = {
  name: "completions",
  path: "/v1/completions",
  errorFormat: null,
  idPrefix: "cmpl-",
  parse,
};

const MAX_TOKENS_DEFAULT = 16;

const chat = chatBodySchema.shape;
/** The fields that the chat request gets unchanged. */
const CHAT_FIELDS = {
  temperature: chat.temperature,
  top_p: chat.top_p,
  n: chat.n,
  stop: chat.stop,
  seed: chat.seed,
  frequency_penalty: chat.frequency_penalty,
  presence_penalty: chat.presence_penalty,
  logit_bias: chat.logit_bias,
};
const text = z.string().check(z.minLength(1));
/**
 * Maximum prompts in a request. The gateway calls the provider once per prompt. LangChain sends 20.
 */
const PROMPTS_MAX = 20;

/**
 * The body of POST /v1/completions. Rejects unsupported fields that would change the output.
 * Accepts their default values.
 */
export const completionsBodySchema = z.looseObject({
  model: chat.model,
  prompt: z.union([text, z.array(text).check(z.minLength(1), z.maxLength(PROMPTS_MAX))], {
    error: `must be a string or a list of 1 to ${PROMPTS_MAX} strings, without token ids`,
  }),
  max_tokens: chat.max_tokens,
  ...CHAT_FIELDS,
  stream: chat.stream,
  stream_options: chat.stream_options,
  user: chat.user,
  echo: z.optional(z.literal(false, { error: "is not supported" })),
  suffix: z.optional(z.literal("", { error: "is not supported" })),
  best_of: z.optional(z.literal(1, { error: "is not supported" })),
  logprobs: z.optional(z.never({ error: "is not supported" })),
});

function parse(value: object, at: EndpointContext): Result<ParsedRequest> {
  const parsed = parseBody(completionsBodySchema, removeNulls(value));
  if (!parsed.ok) return parsed;
  const { model, prompt, max_tokens = MAX_TOKENS_DEFAULT, ...given } = parsed.value;
  const prompts = typeof prompt === "string" ? [prompt] : prompt;
  const refused = refuseTooMany(prompts.length, parsed.value);
  if (refused !== null) return refused;
  const request: ChatBody = {
    ...Object.fromEntries(
      Object.entries(given).filter(([field]) => Object.hasOwn(CHAT_FIELDS, field)),
    ),
    model,
    messages: prompts.map((content) => ({ role: "user", content })),
    max_tokens,
  };
  const usage = selectUsageChunks(at.wantsUsage === true, given);
  const isOpenRouter = isOpenRouterClient(at);
  return success({
    request: { kind: "chat", body: request, ...(prompts.length > 1 && { apart: true }) },
    user: given.user ?? null,
    dropped: [],
    paramOf: (core) => (core.startsWith("messages") ? "prompt" : core),
    reply:
      given.stream === true
        ? { kind: "stream", stream: (head) => new TextStream(head, usage, isOpenRouter) }
        : { kind: "json", json: completionResponse },
    native: null,
  });
}

type CompletionsBody = z.infer<typeof completionsBodySchema>;

function refuseTooMany(prompts: number, { n = 1, stream }: CompletionsBody): Refusal | null {
  if (prompts > 1 && stream === true) {
    return invalid(
      "stream must be false for several prompts. Send one request for each.",
      "stream",
    );
  }
  const isFew = prompts * n <= CHOICES_MAX;
  return isFew
    ? null
    : invalid(`n multiplied by the number of prompts can't exceed ${CHOICES_MAX}.`, "n");
}

function completionResponse(answer: JsonObject, receipt: Receipt): JsonObject {
  const { id, created, model, provider, usage, costMicro } = receipt;
  const { choices } = answer as Completion;
  return {
    id,
    object: "text_completion",
    created,
    model,
    provider,
    choices: choices.map(({ index, message, finish_reason }) => ({
      text: message.content || (message.refusal ?? ""),
      index,
      logprobs: null,
      finish_reason,
    })),
    usage: { ...toOpenAiUsage(usage), ...costFields(costMicro) },
  };
}

class TextStream extends OpenAiStreamWriter implements StreamWriter {
  protected override readonly emptyChoice = { text: "", logprobs: null };
  readonly #templates = new Map<number, EventTemplate>();

  constructor(head: ResponseHead, usage: UsageChunkSelection, isOpenRouter: boolean) {
    super("text_completion", head, usage, isOpenRouter);
  }

  chunk(chunk: Chunk): string {
    const choices = chunk.choices.flatMap(({ index, delta, finish_reason }) => {
      const written = delta.content || (delta.refusal ?? "");
      if (written === "" && finish_reason === null) return [];
      return [{ text: written, index, logprobs: null, finish_reason }];
    });
    return choices.length === 0 ? "" : this.event({ choices });
  }

  text(index: number, json: string): string {
    const around = this.#templates.get(index) ?? this.#makeTemplate(index);
    return around.before + json + around.after;
  }

  #makeTemplate(index: number): EventTemplate {
    const choice = { text: TEXT_PLACEHOLDER, index, logprobs: null, finish_reason: null };
    const around = splitAtPlaceholder(this.event({ choices: [choice] }));
    this.#templates.set(index, around);
    return around;
  }
}
