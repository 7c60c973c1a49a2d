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
import { RepeatedTextReader } from "../../core/text-template.ts";
import { getClaudeRules } from "../../claude/claude-rules.ts";
import { readMessagesUsage } from "./host-answer.ts";
import { MessagesReader } from "./host-messages-reader.ts";
import type { MessagesEvent } from "./host-messages-reader.ts";

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
const readDelta = createObjectReader({ type: readAnyValue, text: textOf, stop_reason: textOf });

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
export class ClaudeNativeReader extends MessagesReader {
  isFinished = false;
  #heldStart: StreamEvent[] = [];
  readonly #texts = new RepeatedTextReader(/"delta":\s?\{"type":\s?"text_delta",\s?"text":\s?/);

  protected override repeatedText(data: string): StreamEvent | null {
    return this.#texts.read(data);
  }

  protected override convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[] {
    this.#texts.clearTemplate();
    return super.convertFrame(raw, name, data);
  }

  protected convertEvent(
    { type, index, content_block: block, delta }: MessagesEvent,
    raw: JsonObject,
    data: string,
  ): StreamEvent[] {
    switch (type) {
      case "message_start":
        this.#heldStart = [forwardEvent(raw, "", null)];
        return this.usageEvents();
      case "content_block_start":
        return this.#withStart(forwardEvent(raw, eventText(readPart(block)), null));
      case "content_block_delta":
        if (index !== undefined) this.#learnText(data, index, delta);
        return this.#withStart(forwardEvent(raw, eventText(readPart(delta)), null));
      case "content_block_stop":
        return this.#withStart(forwardEvent(raw, "", null));
      case "message_delta":
        return this.#finish(raw, delta);
      default:
        return []; // The gateway sends its own pings and skips unknown events.
    }
  }

  #learnText(data: string, index: number, delta: unknown): void {
    const { type, text } = readDelta(delta);
    if (type === "text_delta") this.#texts.setTemplate(data, index, text);
  }

  #withStart(event: StreamEvent): StreamEvent[] {
    if (this.#heldStart.length === 0) return [event];
    const start = this.#heldStart;
    this.#heldStart = [];
    return [...start, event];
  }

  #finish(raw: JsonObject, delta: unknown): StreamEvent[] {
    const reason = readDelta(delta).stop_reason || null;
    this.isFinished ||= reason !== null;
    return [...this.#withStart(forwardEvent(raw, "", reason)), ...this.usageEvents()];
  }
}

function forwardEvent(event: JsonObject, text: string, finish: string | null): StreamEvent {
  return { kind: "native", event, text, finish };
}
