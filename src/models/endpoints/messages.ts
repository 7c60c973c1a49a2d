import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { requestsOneHourCache } from "../protocols/messages/host-native.ts";
import type { JsonObject } from "../core/provider.ts";
import { normalizeChatHistory } from "../core/tool-calls.ts";
import { parseChatRequest } from "../core/core-request.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  Receipt,
  ResponseWriter,
} from "../core/endpoint-adapter.ts";
import {
  createMessagesEnvelope,
  toClientMessage,
  toMessagesUsage,
  completeClaudeBlock,
} from "../protocols/messages/client-answer.ts";
import type { OriginalToolNames } from "../protocols/messages/client-answer.ts";
import { convertMessagesToChatBody } from "../protocols/messages/client-convert.ts";
import { messagesDialect } from "../protocols/messages/client-dialect.ts";
import {
  parseBetaHeader,
  toClaudeNativeRequest,
  listUnknownMessagesFields,
} from "../protocols/messages/client-native.ts";
import { parseMessagesRequest, MESSAGES_VERSIONS } from "../protocols/messages/client-request.ts";
import type { MessagesVersion } from "../protocols/messages/client-request.ts";
import {
  createConvertedMessagesStream,
  createNativeMessagesStream,
} from "../protocols/messages/client-stream.ts";

/**
 * POST /v1/messages in Anthropic's format. Claude hosts get requests in this format, and other
 * hosts get converted requests.
 */
export const messagesEndpoint: EndpointAdapter = {
  name: "messages",
  path: "/v1/messages",
  errorFormat: () => messagesDialect,
  idPrefix: "msg_",
  parse,
};

function parse(value: object, at: EndpointContext): Result<ParsedRequest> {
  const version = parseMessagesVersion(at);
  if (!version.ok) return version;
  const parsed = parseMessagesRequest(value, version.value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const converted = convertMessagesToChatBody(body);
  if (!converted.ok) return converted;
  const native = toClaudeNativeRequest(body, parseBetaHeader(at.header("anthropic-beta")));
  if (!native.ok) return native;
  const { losses } = converted.value;
  const { body: sent, betas, dropped, unconverted, weights, outputLeast } = native.value;
  const caching = native.value.marksCache ? EXPLICIT_CACHING : {};
  const core = parseChatRequest({ ...converted.value.body, ...caching });
  if (!core.ok) return core;
  return success({
    request: { kind: "chat", body: normalizeChatHistory(core.value) },
    user: null,
    dropped: [...listUnknownMessagesFields(body), ...losses.dropped, ...dropped, ...unconverted],
    requiredRegion:
      body.inference_geo && body.inference_geo !== "global"
        ? { name: body.inference_geo, param: "inference_geo" }
        : null,
    paramOf,
    reply: convertedReply(body.stream === true, losses.names.origins),
    native: {
      wire: "messages",
      body: sent,
      headers: betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") },
      dropped: [...dropped],
      reply:
        body.stream === true
          ? { kind: "stream", stream: createNativeMessagesStream }
          : { kind: "json", json: nativeMessage },
      weights,
      outputLeast,
      hourCache: requestsOneHourCache(sent),
      only: losses.lack,
    },
  });
}

const EXPLICIT_CACHING: JsonObject = { prompt_cache_options: { mode: "explicit" } };

export function parseMessagesVersion(at: EndpointContext): Result<MessagesVersion> {
  const requested = at.header("anthropic-version") ?? "";
  if (requested === "") return success(MESSAGES_VERSIONS[0]);
  const known = MESSAGES_VERSIONS.find((version) => version === requested);
  if (known !== undefined) return success(known);
  return invalid(
    `anthropic-version: must be ${MESSAGES_VERSIONS.join(" or ")}`,
    "anthropic-version",
  );
}

const PARAMS: Readonly<Record<string, string>> = {
  max_completion_tokens: "max_tokens",
  parallel_tool_calls: "tool_choice",
  prompt_cache_options: "cache_control",
  reasoning_effort: "thinking",
  response_format: "output_config",
  stop: "stop_sequences",
};

function paramOf(param: string): string | null {
  const field = /^[a-z_]+/.exec(param)?.[0] ?? null;
  return field === null ? null : (PARAMS[field] ?? field);
}

function convertedReply(isStream: boolean, names: OriginalToolNames): ResponseWriter {
  return isStream
    ? { kind: "stream", stream: (head) => createConvertedMessagesStream(head, names) }
    : {
        kind: "json",
        json: (answer, receipt) => ({
          ...createMessagesEnvelope(receipt),
          ...toClientMessage(answer, names),
          usage: toMessagesUsage(receipt.usage, receipt.costMicro),
        }),
      };
}

function nativeMessage(answer: JsonObject, receipt: Receipt): JsonObject {
  const { content, stop_reason, stop_sequence, stop_details, context_management } = answer;
  return {
    ...createMessagesEnvelope(receipt),
    content: Array.isArray(content) ? content.map(completeClaudeBlock) : [],
    stop_reason,
    stop_sequence: stop_sequence ?? null,
    stop_details: stop_details ?? null,
    ...(context_management !== undefined && { context_management }),
    usage: toMessagesUsage(receipt.usage, receipt.costMicro),
  };
}
