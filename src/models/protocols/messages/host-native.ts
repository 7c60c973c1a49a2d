import { definedFields } from "../../../shared/defined-fields.ts";
import type { Usage } from "../../../shared/usage.ts";
import {
  isObject,
  numberOf,
  objectOf,
  removeNulls,
  textOf,
  readAnyValue,
  createObjectReader,
} from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import type { JsonObject, NativeOutput, ChatCall, StreamEvent } from "../../core/provider.ts";
import {
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { RepeatedTextReader } from "../../core/text-template.ts";
import { getClaudeRules } from "../../claude/claude-rules.ts";
import { parseMessagesErrorEvent } from "./host-failure.ts";
import { mergeLaterUsage, readMessagesUsage, hasOutputTokenCount } from "./host-answer.ts";

/** Sets the route's model, cap and tier. Drops and reports tuning fields that the model rejects. */
export function toClaudeNativeBody(
  { upstreamId, cap, native, stream, onDropped }: ChatCall,
  geo: "us" | null,
): { readonly body: JsonObject; readonly beta: string | null } | null {
  if (native === undefined) return null;
  const rules = getClaudeRules(upstreamId);
  const { temperature, top_p, top_k, ...body } = native.body;
  const { thinking, max_tokens: requestedCap } = readSettings(body);
  const allowsSampling = rules.acceptsSampling && !THINKING_TYPES.has(thinking.type);
  const samplingFields = removeNulls({ temperature, top_p, top_k });
  const sampling = allowsSampling ? removeTopP(samplingFields) : {};
  onDropped?.(Object.keys(samplingFields).filter((field) => !Object.hasOwn(sampling, field)));
  return {
    beta: native.headers["anthropic-beta"] ?? null,
    body: {
      ...body,
      ...sampling,
      model: upstreamId,
      max_tokens: requestedCap === 0 ? 0 : cap,
      ...(geo !== null && rules.acceptsInferenceGeo && { inference_geo: geo }),
      service_tier: "standard_only", // The priority tier has another price.
      ...(stream && { stream: true }),
    },
  };
}

export function requestsOneHourCache(body: JsonObject): boolean {
  return Object.entries(body).some(([field, value]) =>
    field === "cache_control" ? isHourCache(value) : containsHourCache(value),
  );
}

function containsHourCache(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(containsHourCache);
  return isObject(value) && requestsOneHourCache(value);
}

function isHourCache(mark: unknown): boolean {
  const { ttl }: KnownFields<"ttl"> = objectOf(mark);
  return ttl !== undefined && ttl !== null && ttl !== "5m";
}

const readSettings = createObjectReader({
  max_tokens: numberOf,
  thinking: createObjectReader({ type: readAnyValue }),
});
const THINKING_TYPES: ReadonlySet<unknown> = new Set(["enabled", "adaptive"]);

/** Removes `top_p` if `temperature` is set, because the host returns 400 for both. */
function removeTopP(samplingFields: JsonObject): JsonObject {
  const { top_p: _, ...withoutTopP } = samplingFields;
  return "temperature" in withoutTopP ? withoutTopP : samplingFields;
}

/** Reads Claude's message without converting it. */
export function readClaudeNativeMessage(
  raw: JsonObject,
  requestsHour: boolean,
): NativeAnswer | null {
  const { content, usage, stop_reason: stopReason } = raw;
  if (!Array.isArray(content)) return null;
  const text = content.map((block) => eventText(readPart(block))).join("");
  const native = { text, finish: textOf(stopReason) || null };
  return { body: raw, usage: readMessagesUsage(usage, requestsHour), native };
}

type NativeAnswer = {
  readonly body: JsonObject;
  readonly usage: Usage | null;
  readonly native: NativeOutput;
};

const readPart = createObjectReader({
  text: textOf,
  thinking: textOf,
  partial_json: textOf,
  name: textOf,
  input: (input) => (input === undefined ? "" : JSON.stringify(input)),
});
const readEvent = createObjectReader({
  type: textOf,
  index: numberOf,
  message: createObjectReader({ usage: readAnyValue }),
  content_block: readPart,
  delta: createObjectReader({ type: readAnyValue, text: textOf, stop_reason: textOf }),
  usage: readAnyValue,
});
type Event = ReturnType<typeof readEvent>;

function eventText({
  text,
  thinking,
  partial_json: json,
  name,
  input,
}: ReturnType<typeof readPart>): string {
  return text + thinking + json + name + (input === "{}" ? "" : input);
}

/** Reads a Messages stream without converting it. */
export class ClaudeNativeReader extends FrameReader {
  #usage: JsonObject = {};
  #isCounted = false;
  isFinished = false;
  #heldStart: StreamEvent[] = [];
  readonly #texts = new RepeatedTextReader(/"delta":\s?\{"type":\s?"text_delta",\s?"text":\s?/);
  readonly #requestsHour: boolean;

  constructor(secret: string, requestsHour: boolean) {
    super(secret);
    this.#requestsHour = requestsHour;
  }

  protected override repeatedText(data: string): StreamEvent | null {
    return this.#texts.read(data);
  }

  protected convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[] {
    this.#texts.clearTemplate();
    const { type, message, content_block: block, ...rest } = readEvent(raw);
    if (name === "error" || type === "error") {
      return createFailureEvents(parseMessagesErrorEvent(raw, this.secret));
    }
    switch (type) {
      case "message_start":
        this.#usage = mergeLaterUsage({}, message.usage);
        this.#heldStart = [forwardEvent(raw, "", null)];
        return this.#usageEvents();
      case "content_block_start":
        return this.#withStart(forwardEvent(raw, eventText(block), null));
      case "content_block_delta":
        this.#learnText(data, rest);
        return this.#withStart(forwardEvent(raw, eventText(readPart(raw["delta"])), null));
      case "content_block_stop":
        return this.#withStart(forwardEvent(raw, "", null));
      case "message_delta":
        return this.#finish(raw, rest);
      case "message_stop":
        return this.#end();
      default:
        return []; // The gateway sends its own pings and skips unknown events.
    }
  }

  #learnText(data: string, { index, delta }: Pick<Event, "index" | "delta">): void {
    const isText = delta.type === "text_delta" && index !== undefined;
    if (isText) this.#texts.setTemplate(data, index, delta.text);
  }

  #withStart(event: StreamEvent): StreamEvent[] {
    if (this.#heldStart.length === 0) return [event];
    const start = this.#heldStart;
    this.#heldStart = [];
    return [...start, event];
  }

  #finish(raw: JsonObject, { usage, delta }: Pick<Event, "usage" | "delta">): StreamEvent[] {
    this.#usage = mergeLaterUsage(this.#usage, usage);
    this.#isCounted ||= hasOutputTokenCount(usage);
    const reason = delta.stop_reason || null;
    this.isFinished ||= reason !== null;
    return [...this.#withStart(forwardEvent(raw, "", reason)), ...this.#usageEvents()];
  }

  #usageEvents(): StreamEvent[] {
    const usage = readMessagesUsage(this.#usage, this.#requestsHour);
    if (usage === null) return [];
    const isPartial = !(this.isFinished && this.#isCounted);
    return [{ kind: "usage", usage, ...(isPartial && { partial: true }) }];
  }

  #end(): StreamEvent[] {
    return this.isFinished
      ? [STREAM_END_EVENT]
      : createFailureEvents(createRetryableFailure("no_finish_reason"));
  }
}

function forwardEvent(event: JsonObject, text: string, finish: string | null): StreamEvent {
  return { kind: "native", event, text, finish };
}
