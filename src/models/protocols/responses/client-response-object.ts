import { costFields } from "../../../shared/money.ts";
import { sumPromptTokens } from "../../../shared/usage.ts";
import { isObject, listOf, numberOf, textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ResponseHead, Receipt } from "../../core/endpoint-adapter.ts";
import type { ResponsesRequest } from "./client-request.ts";

/** A token's log probability. `bytes` and `top_logprobs` are never null. */
export type Logprob = TopLogprob & { readonly top_logprobs: readonly TopLogprob[] };
type TopLogprob = {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
};
export type UrlCitation = {
  readonly type: "url_citation";
  readonly url: string;
  readonly title: string;
  readonly start_index: number;
  readonly end_index: number;
};
export type TextPart = {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly UrlCitation[];
  readonly logprobs: readonly Logprob[];
};
export type RefusalPart = { readonly type: "refusal"; readonly refusal: string };
export type ReasoningSummaryPart = { readonly type: "summary_text"; readonly text: string };

export type OutputMessagePhase = "commentary" | "final_answer";

type ItemStatus = "in_progress" | "completed" | "incomplete";
type CalledTool = { readonly name: string; readonly namespace?: string };

/** An output item (openai npm, ResponseOutputItem). Optional fields are absent, never null. */
export type OutputItem =
  | {
      readonly id: string;
      readonly type: "message";
      readonly status: ItemStatus;
      readonly role: "assistant";
      readonly content: readonly (TextPart | RefusalPart)[];
      readonly phase?: OutputMessagePhase;
    }
  | ({
      readonly id: string;
      readonly type: "function_call";
      readonly status: ItemStatus;
      readonly call_id: string;
      readonly arguments: string;
    } & CalledTool)
  | ({
      readonly id: string;
      readonly type: "custom_tool_call";
      readonly status: ItemStatus;
      readonly call_id: string;
      readonly input: string;
    } & CalledTool)
  | {
      readonly id: string;
      readonly type: "reasoning";
      readonly status: ItemStatus;
      readonly summary: readonly ReasoningSummaryPart[];
      readonly encrypted_content: string | null;
    };

export type ResponseError = {
  readonly code: string;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
};

export type ChangingResponseFields = {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly error: ResponseError | null;
  readonly incomplete_details: { readonly reason: "max_output_tokens" | "content_filter" } | null;
  readonly output: readonly OutputItem[];
};

const ECHO_DEFAULTS = {
  instructions: null,
  tool_choice: "auto",
  parallel_tool_calls: true,
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  truncation: "disabled",
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  user: null,
  safety_identifier: null,
  prompt_cache_key: null,
  previous_response_id: null,
} as const;
const CONSTANT_ECHO = { background: false, service_tier: "default", access_programs: null };

/** Maximum characters of the tools and instructions that a stream repeats, to limit its memory. */
const ECHO_CHARACTERS_MAX = 131_072;

/** Returns a response's fields that repeat the request, or their defaults. */
export function getEchoedFields(body: ResponsesRequest): JsonObject {
  const keys = Object.keys(ECHO_DEFAULTS) as (keyof typeof ECHO_DEFAULTS)[];
  const clientFields = keys.flatMap((key) => (body[key] === undefined ? [] : [[key, body[key]]]));
  const { text } = body;
  const echo: JsonObject = {
    ...ECHO_DEFAULTS,
    ...Object.fromEntries(clientFields),
    ...CONSTANT_ECHO,
    tools: (body.tools ?? []).map(echoedTool),
    text: {
      format: text?.format ?? { type: "text" },
      ...(text?.verbosity && { verbosity: text.verbosity }),
    },
    reasoning: echoedReasoning(body.reasoning ?? {}),
  };
  const { tools, instructions, tool_choice: choice, text: format } = echo;
  const size = JSON.stringify([tools, instructions, choice, format]).length;
  return size <= ECHO_CHARACTERS_MAX ? echo : { ...echo, ...SHORTENED_ECHO };
}

function echoedReasoning(reasoning: NonNullable<ResponsesRequest["reasoning"]>): JsonObject {
  const { effort = null, summary, generate_summary: oldSummary = null } = reasoning;
  return { effort, summary: summary ?? oldSummary };
}

const SHORTENED_ECHO = {
  tools: [],
  instructions: null,
  tool_choice: "auto",
  text: { format: { type: "text" } },
} as const;

function echoedTool(raw: JsonObject): JsonObject {
  return raw["type"] === "function"
    ? { description: null, parameters: null, strict: null, ...raw }
    : raw;
}

export function createInProgressResponse(head: ResponseHead, echo: JsonObject): JsonObject {
  const state = { status: "in_progress", error: null, incomplete_details: null, output: [] };
  const rest = { ...echo, ...SHORTENED_ECHO, store: head.keeps, usage: null };
  return { ...responseIdentity(head), completed_at: null, ...state, ...rest };
}

export function createEndedResponse(
  head: ResponseHead,
  echo: JsonObject,
  state: ChangingResponseFields,
  receipt: Receipt | null,
): JsonObject {
  const usage = receipt === null ? null : usageOf(receipt);
  const completedAt = state.status === "completed" ? (receipt?.ended ?? null) : null;
  const store = head.keeps && state.status !== "failed";
  return { ...responseIdentity(head), completed_at: completedAt, ...state, ...echo, store, usage };
}

function responseIdentity({ id, created, model }: ResponseHead) {
  return { id, object: "response", created_at: created, model };
}

function usageOf({ usage, costMicro }: Receipt) {
  const input = sumPromptTokens(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
    ...costFields(costMicro),
  };
}

export function toResponsesLogprobs(raw: unknown): Logprob[] {
  return listOf(raw)
    .filter(isObject)
    .map((rawLogprob) => {
      const topLogprobs = listOf(rawLogprob["top_logprobs"]).filter(isObject);
      return Object.assign(toTopLogprob(rawLogprob), {
        top_logprobs: topLogprobs.map(toTopLogprob),
      });
    });
}

function toTopLogprob({ token, logprob, bytes }: JsonObject): TopLogprob {
  return {
    token: textOf(token),
    logprob: numberOf(logprob) ?? 0,
    bytes: listOf(bytes).filter((byte) => typeof byte === "number"),
  };
}

export function readChatUrlCitations(raw: unknown): UrlCitation[] {
  return listOf(raw)
    .filter(isObject)
    .flatMap((rawAnnotation) => {
      const rawCitation = rawAnnotation["url_citation"];
      return rawAnnotation["type"] === "url_citation" && isObject(rawCitation)
        ? [toCitation(rawCitation)]
        : [];
    });
}

export function readNativeUrlCitations(raw: unknown): UrlCitation[] {
  const rawAnnotations = listOf(raw).filter(isObject);
  return rawAnnotations.filter(({ type }) => type === "url_citation").map(toCitation);
}

function toCitation({ url, title, start_index: start, end_index: end }: JsonObject): UrlCitation {
  return {
    type: "url_citation",
    url: textOf(url),
    title: textOf(title),
    start_index: numberOf(start) ?? 0,
    end_index: numberOf(end) ?? 0,
  };
}
