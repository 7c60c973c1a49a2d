import { normalizeHistory } from "../core/tool-calls.ts";
import { RESPONSE_ID_PREFIX } from "../../shared/contracts/stored-responses.ts";
import type { StoredResponseResult } from "../../shared/contracts/stored-responses.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result, Failure } from "../../shared/failure.ts";
import type { ChatBody, ChatMessage } from "../core/core-request.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  ResponseWriter,
  ResponseHead,
} from "../core/endpoint-adapter.ts";
import {
  createStoredResponse,
  toResponseObject,
  ResponseStream,
  CONTEXT_LENGTH_CODE,
} from "../protocols/responses/client-answer.ts";
import type { ResponseContext } from "../protocols/responses/client-answer.ts";
import {
  getImageErrorCode,
  convertItemsToChatMessages,
} from "../protocols/responses/client-input.ts";
import type { ConvertedInput } from "../protocols/responses/client-input.ts";
import type { ResponsesRequest } from "../protocols/responses/client-request.ts";
import {
  listIgnoredResponsesFields,
  parseResponsesRequest,
  toChatSettings,
  getRequestedOptionalOutput,
} from "../protocols/responses/client-request.ts";
import { toResponsesNativeRequest } from "../protocols/responses/client-native.ts";
import {
  findStoredResponseReferences,
  toParamOfRequest,
  expandStoredReferences,
} from "./expand-stored.ts";
import type { ExpandedBody } from "./expand-stored.ts";
import { getEchoedFields } from "../protocols/responses/client-response-object.ts";
import { resolveToolChoice, flattenTools } from "../protocols/responses/client-tools.ts";
import type { FlattenedTools } from "../protocols/responses/client-tools.ts";
import type { Dialect } from "../../shared/http/dialect.ts";
import { errorResponseOf } from "../../shared/http/failure-mapping.ts";
import { elapsedMs } from "../../shared/clock.ts";

/** POST /v1/responses. The provider stores nothing. */
export const responsesEndpoint: EndpointAdapter = {
  name: "responses",
  path: "/v1/responses",
  errorFormat: (at) => (isCodexRequest(at) ? codexDialect : null),
  defaultsToMaxOutput: true,
  idPrefix: RESPONSE_ID_PREFIX,
  storedIdsOf: findStoredResponseReferences,
  parse,
};

function parse(
  value: object,
  _at: EndpointContext,
  recalled?: StoredResponseResult,
): Result<ParsedRequest> {
  const expanded = expandStoredReferences(value, recalled);
  if (!expanded.ok) return expanded;
  const { before } = expanded.value;
  const parsed = parseExpanded(expanded.value);
  if (parsed.ok || before === 0 || parsed.failure.kind !== "invalid_request") return parsed;
  const { param, message } = parsed.failure;
  const clientParam = toParamOfRequest(param, before);
  const text = param === null ? message : message.replace(param, clientParam ?? param);
  return refuse({ ...parsed.failure, param: clientParam, message: text });
}

function parseExpanded({ body: value, before, own }: ExpandedBody): Result<ParsedRequest> {
  const parsed = parseResponsesRequest(value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const flat = flattenRequestTools(body);
  if (!flat.ok) return flat;
  const { tool_choice: choice, parallel_tool_calls: parallel } = body;
  const tools = resolveToolChoice(flat.value, choice, parallel);
  if (!tools.ok) return tools;
  const converted = conversationOf(body);
  if (!converted.ok) return converted;
  const { messages, left, places } = converted.value;
  const core: ChatBody = { ...toChatSettings(body), ...tools.value, model: body.model, messages };
  const everywhere = [
    ...listIgnoredResponsesFields({ ...value }),
    ...flat.value.left.map((type) => `tools.${type}`),
  ];
  const dropped = [
    ...everywhere,
    ...(body.reasoning?.["context"] ? ["reasoning.context"] : []),
    ...[...left].map((type) => `input.${type}`),
  ];
  const native = toResponsesNativeRequest(body, flat.value);
  const asking = {
    wanted: { shown: getRequestedOptionalOutput(body), origins: flat.value.origins },
    echo: getEchoedFields(body),
  };
  return success({
    request: { kind: "chat", body: core },
    user: body.user ?? null,
    dropped,
    paramOf: (param) => toParamOfRequest(paramOf(param, places), before),
    codeOf: getImageErrorCode,
    reply: responseWriterOf(body, { ...asking, isNative: false }),
    ...(own !== null &&
      body.store !== false && {
        keep: { previous: body.previous_response_id ?? null, input: own },
      }),
    native: {
      wire: "responses",
      body: native.body,
      headers: {},
      dropped: [...everywhere, ...native.dropped],
      reply: responseWriterOf(body, { ...asking, isNative: true }),
      weights: native.weights,
      outputLeast: 0,
      hourCache: false,
      only: body.truncation === "auto" ? NO_TRUNCATION : null,
    },
  });
}

const NO_TRUNCATION = {
  param: "truncation",
  message: "'truncation' must be 'disabled', because this gateway never truncates the input.",
};

function flattenRequestTools(body: ResponsesRequest): Result<FlattenedTools> {
  const lists = [{ tools: body.tools ?? [], at: "tools" }];
  for (const [index, item] of (typeof body.input === "string" ? [] : body.input).entries()) {
    if (item.type !== "additional_tools") continue;
    lists.push({ tools: item.tools, at: `input[${index}].tools` });
  }
  return flattenTools(lists);
}

function conversationOf({ instructions, input }: ResponsesRequest): Result<ConvertedConversation> {
  const first: ChatMessage[] =
    instructions === undefined || instructions === ""
      ? []
      : [{ role: "system", content: instructions }];
  if (typeof input === "string") {
    const messages: ChatMessage[] = [...first, { role: "user", content: input }];
    return success({ messages, left: new Set(), places: new Map() });
  }
  const converted = convertItemsToChatMessages(input);
  if (!converted.ok) return converted;
  const { messages, left, places } = converted.value;
  if (first.length + messages.length === 0) {
    return invalid("input must have at least one item with content", "input");
  }
  const after = new Map([...places].map(([index, place]) => [index + first.length, place]));
  return success({ messages: [...first, ...normalizeHistory(messages)], left, places: after });
}

type ConvertedConversation = Omit<ConvertedInput, "messages"> & {
  readonly messages: ChatMessage[];
};

function responseWriterOf({ stream }: ResponsesRequest, asking: ResponseContext): ResponseWriter {
  return stream === true
    ? { kind: "stream", stream: (head) => new ResponseStream(head, asking) }
    : {
        kind: "json",
        json: (answer, receipt) => toResponseObject(answer, asking, receipt),
        kept: (answer, receipt) => createStoredResponse(answer, asking, receipt),
      };
}

const PARAMS: readonly (readonly [RegExp, string])[] = [
  [/^messages\b/, "input"],
  [/^(?:max_completion_tokens|max_tokens)\b/, "max_output_tokens"],
  [/^response_format\b/, "text.format"],
  [/^verbosity\b/, "text.verbosity"],
  [/^reasoning_effort\b/, "reasoning.effort"],
  [/^tools\b/, "tools"],
  [/^logprobs\b/, "include"],
];

function paramOf(core: string, places: ConvertedConversation["places"]): string {
  const [, message, part] = /^messages\[(\d+)\]\.content(\[\d+\]\..*)$/.exec(core) ?? [];
  const place = places.get(Number(message));
  if (place !== undefined && part !== undefined) return place + part;
  return PARAMS.find(([pattern]) => pattern.test(core))?.[1] ?? core;
}

/**
 * The error format for Codex (source: the SSE reader and `api_bridge` of codex-rs). After a 402 or
 * 429, Codex retries or silently drops a turn. After a charged 5xx, Codex would retry and pay
 * again. Codex therefore gets these errors as a failed stream.
 */
const codexDialect: Dialect = {
  error(failure, requestId) {
    const { status, code, headers } = errorResponseOf(failure);
    const isTold = status === 402 || status === 429 || code === CONTEXT_LENGTH_CODE;
    if (!isTold && failure.charged === undefined) return null;
    return {
      status: 200,
      headers: { ...headers, "content-type": "text/event-stream; charset=utf-8" },
      body: failedStream(failure, requestId),
    };
  },
  headers: () => ({}),
};

const CODEX = /^codex[\s_/-]/i;

/** Reports whether the client is Codex, which expects a stream. */
function isCodexRequest(at: EndpointContext): boolean {
  const isNamed = ["originator", "user-agent"].some((name) => CODEX.test(at.header(name) ?? ""));
  return isNamed && at.header("accept")?.includes("text/event-stream") === true;
}

const UNKNOWN_VALUE = "unknown";
const CODEX_ERROR_CONTEXT = {
  wanted: {
    shown: { summary: false, encrypted: false, logprobs: false },
    origins: new Map<string, never>(),
  },
  echo: getEchoedFields({ model: UNKNOWN_VALUE, input: UNKNOWN_VALUE }),
  isNative: false,
};

function failedStream(failure: Failure, requestId: string): string {
  const head: ResponseHead = {
    id: `resp_${requestId.slice("req_".length)}`,
    model: UNKNOWN_VALUE,
    created: Math.floor(elapsedMs() / 1000),
    promptTokens: 1,
    keeps: false,
  };
  const stream = new ResponseStream(head, CODEX_ERROR_CONTEXT);
  return stream.begin() + stream.fail(failure, null);
}
