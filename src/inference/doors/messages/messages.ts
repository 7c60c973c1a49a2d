import { invalid, success } from "../../../lib/failure.ts";
import type { Result } from "../../../lib/failure.ts";
import { keepsAnHour } from "../../../providers/anthropic/native.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { parseChatRequest } from "../../core-request.ts";
import type { Asked, Door, DoorContext, Receipt, Reply } from "../door.ts";
import { envelope, saidOf, usageOf, wholeBlock } from "./answer.ts";
import { chatBodyOf } from "./convert.ts";
import { messagesDialect } from "./dialect.ts";
import { betasIn, nativeOf, unknownIn } from "./native.ts";
import { parseMessages, VERSIONS } from "./request.ts";
import type { Version } from "./request.ts";
import { convertedStream, nativeStream } from "./stream.ts";

/** POST /v1/messages: Anthropic's dialect, as it passes to Claude's own host or over the core. */
export const messagesDoor: Door = {
  name: "messages",
  path: "/v1/messages",
  dialect: () => messagesDialect,
  idPrefix: "msg_",
  parse,
};

function parse(value: object, at: DoorContext): Result<Asked> {
  const version = versionOf(at);
  if (!version.ok) return version;
  const parsed = parseMessages(value, version.value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const converted = chatBodyOf(body);
  if (!converted.ok) return converted;
  const native = nativeOf(body, betasIn(at.header("anthropic-beta")));
  if (!native.ok) return native;
  const core = parseChatRequest(converted.value.body);
  if (!core.ok) return core;
  const { losses } = converted.value;
  const { body: sent, betas, dropped, weights, outputLeast } = native.value;
  return success({
    request: { kind: "chat", body: core.value },
    user: null,
    dropped: [...unknownIn(body), ...losses.dropped],
    paramOf,
    reply: replyOf(body.stream === true, false),
    native: {
      wire: "messages",
      body: sent,
      headers: betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") },
      dropped: [...dropped],
      reply: replyOf(body.stream === true, true),
      weights,
      outputLeast,
      hourCache: keepsAnHour(sent),
      only: losses.lack,
    },
  });
}

/** The dialect's version of this request. Failures: 400 for one that is not known here. */
export function versionOf(at: DoorContext): Result<Version> {
  const asked = at.header("anthropic-version") ?? "";
  if (asked === "") return success(VERSIONS[0]);
  const known = VERSIONS.find((version) => version === asked);
  if (known !== undefined) return success(known);
  return invalid(`anthropic-version: must be ${VERSIONS.join(" or ")}`, "anthropic-version");
}

/** What the core calls otherwise. */
const PARAMS: Readonly<Record<string, string>> = {
  max_completion_tokens: "max_tokens",
  parallel_tool_calls: "tool_choice",
  reasoning_effort: "thinking",
  response_format: "output_config",
  stop: "stop_sequences",
};

/** A field of the core as this dialect calls it; places inside messages differ, so only the field is named. */
function paramOf(param: string): string | null {
  const field = /^[a-z_]+/.exec(param)?.[0] ?? null;
  return field === null ? null : (PARAMS[field] ?? field);
}

function replyOf(isStream: boolean, isNative: boolean): Reply {
  if (isStream) return { kind: "stream", stream: isNative ? nativeStream : convertedStream };
  return { kind: "json", json: isNative ? nativeMessage : convertedMessage };
}

/** The core's answer as a message. */
function convertedMessage(answer: JsonObject, receipt: Receipt): JsonObject {
  return {
    ...envelope(receipt),
    ...saidOf(answer),
    usage: usageOf(receipt.usage, receipt.costMicro),
  };
}

/** Claude's own message under our id and model; what names our account there does not pass. */
function nativeMessage(answer: JsonObject, receipt: Receipt): JsonObject {
  const { content, stop_reason, stop_sequence, stop_details, context_management } = answer;
  return {
    ...envelope(receipt),
    content: Array.isArray(content) ? content.map(wholeBlock) : [],
    stop_reason,
    stop_sequence: stop_sequence ?? null,
    stop_details: stop_details ?? null,
    ...(context_management !== undefined && { context_management }),
    usage: usageOf(receipt.usage, receipt.costMicro),
  };
}
