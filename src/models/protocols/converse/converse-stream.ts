import { ChunkBuilder } from "../../core/output-part.ts";
import type { StreamReader, FrameSource, StreamFrame } from "../../core/frame-reader.ts";
import {
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  toStreamReader,
  createEventTooLargeFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import {
  numberOf,
  parseObject,
  textOf,
  readAnyValue,
  createOptionalReader,
  createObjectReader,
} from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { parseBedrockException } from "./bedrock-failure.ts";
import {
  INCOMPLETE_RESPONSE_FAILURE,
  toClaudeReasoningDetail,
  parseConverseFinishReason,
  readConverseUsage,
} from "./converse-answer.ts";

export type EventStreamFrame = {
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
};

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** Maximum bytes of a frame. AWS limits payloads to 16 MiB. */
const FRAME_BYTES_MAX = 16 * 1024 * 1024;

/**
 * The length in bytes of a header's value, by type (0 to 9). Null if the value's first two bytes
 * contain its length.
 */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, null, null, 8, 16];
const STRING_TYPE = 7;

/**
 * Decodes `application/vnd.amazon.eventstream` (smithy.io, "Amazon Event Stream Specification"):
 * big-endian frames of `u32 total length | u32 headers length | u32 CRC of both | headers | payload
 * | u32 CRC of all before`.
 */
export class FrameDecoder {
  #parts: Uint8Array[] = [];
  #bufferedBytes = 0;
  #neededBytes = PRELUDE_BYTES;
  broken = false;
  overflowed = false;

  push(bytes: Uint8Array): EventStreamFrame[] {
    if (this.broken || bytes.length === 0) return [];
    this.#parts.push(bytes);
    this.#bufferedBytes += bytes.length;
    const frames: EventStreamFrame[] = [];
    while (this.#bufferedBytes >= this.#neededBytes && !this.broken) {
      const buffered = this.#joinParts();
      const frameBytes = totalBytes(buffered);
      this.overflowed = frameBytes !== null && frameBytes > FRAME_BYTES_MAX;
      if (frameBytes === null || this.overflowed) this.broken = true;
      else if (buffered.length < frameBytes) this.#neededBytes = frameBytes;
      else this.#takeFrame(buffered, frameBytes, frames);
    }
    return frames;
  }

  #takeFrame(bytes: Uint8Array, frameBytes: number, frames: EventStreamFrame[]): void {
    const frame = parseFrame(bytes.subarray(0, frameBytes));
    if (frame === null) this.broken = true;
    else frames.push(frame);
    this.#bufferedBytes -= frameBytes;
    this.#parts = this.#bufferedBytes === 0 ? [] : [bytes.subarray(frameBytes)];
    this.#neededBytes = PRELUDE_BYTES;
  }

  #joinParts(): Uint8Array {
    const [first] = this.#parts;
    if (this.#parts.length === 1 && first !== undefined) return first;
    const joined = new Uint8Array(this.#bufferedBytes);
    let at = 0;
    for (const part of this.#parts) {
      joined.set(part, at);
      at += part.length;
    }
    this.#parts = [joined];
    return joined;
  }
}

function totalBytes(bytes: Uint8Array): number | null {
  const view = viewOf(bytes);
  const total = view.getUint32(0);
  const headers = view.getUint32(4);
  const isLongEnough = total >= PRELUDE_BYTES + headers + CRC_BYTES;
  return isLongEnough && view.getUint32(8) === crc32(bytes.subarray(0, 8)) ? total : null;
}

function parseFrame(bytes: Uint8Array): EventStreamFrame | null {
  const view = viewOf(bytes);
  const end = bytes.length - CRC_BYTES;
  if (view.getUint32(end) !== crc32(bytes.subarray(0, end))) return null;
  const payloadAt = PRELUDE_BYTES + view.getUint32(4);
  const headers = parseHeaders(bytes.subarray(PRELUDE_BYTES, payloadAt));
  return headers && { headers, payload: bytes.subarray(payloadAt, end) };
}

function parseHeaders(bytes: Uint8Array): ReadonlyMap<string, string> | null {
  const headers = new Map<string, string>();
  const view = viewOf(bytes);
  const text = new TextDecoder();
  let at = 0;
  while (at < bytes.length) {
    const nameAt = at + 1;
    const typeAt = nameAt + view.getUint8(at);
    const type = bytes[typeAt];
    const fixedBytes = type === undefined ? undefined : VALUE_BYTES[type];
    if (fixedBytes === undefined) return null;
    const valueAt = typeAt + (fixedBytes === null ? 3 : 1);
    if (valueAt > bytes.length) return null;
    at = valueAt + (fixedBytes ?? view.getUint16(typeAt + 1));
    if (at > bytes.length) return null;
    if (type !== STRING_TYPE) continue;
    const name = text.decode(bytes.subarray(nameAt, typeAt));
    headers.set(name, text.decode(bytes.subarray(valueAt, at)));
  }
  return headers;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Computes gzip's CRC-32 (ISO 3309). */
function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) crc = (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let entry = byte;
  for (let bit = 0; bit < 8; bit++) entry = (entry >>> 1) ^ (entry & 1 ? 0xedb88320 : 0);
  return entry;
});

const readEvent = createObjectReader({
  contentBlockIndex: numberOf,
  start: createObjectReader({
    toolUse: createOptionalReader(createObjectReader({ toolUseId: textOf, name: textOf })),
  }),
  delta: createObjectReader({
    text: textOf,
    toolUse: createObjectReader({ input: textOf }),
    reasoningContent: createObjectReader({ text: textOf, signature: textOf }),
  }),
  __type: textOf,
  stopReason: readAnyValue,
  usage: readAnyValue,
});
type Event = Omit<ReturnType<typeof readEvent>, "__type">;

type Block = {
  /**
   * A tool call's index. "answer" is the first call of the JSON output tool, "spare" a later one.
   */
  readonly tool: number | "answer" | "spare" | null;
  thought: string;
};

/**
 * Converts a Converse stream. The finish chunk waits for the usage in `metadata`, which can come
 * before `messageStop`.
 */
export class ConverseReader extends FrameReader {
  readonly #chunks = new ChunkBuilder();
  readonly #blocks = new Map<number, Block>();
  readonly #answerTool: string | null;
  readonly #secrets: readonly string[];
  #toolCount = 0;
  #hasAnswerCall = false;
  #heldText = "";
  #messageStop: Event | null = null;
  #metadata: Event | null = null;

  constructor(answerTool: string | null, secrets: readonly string[]) {
    super();
    this.#answerTool = answerTool;
    this.#secrets = secrets;
  }

  protected get isFinished(): boolean {
    return (
      this.#messageStop !== null && parseConverseFinishReason(this.#messageStop.stopReason) !== null
    );
  }

  protected override eventsAtEnd(): StreamEvent[] {
    return this.#messageStop === null ? [] : this.#end(this.#messageStop);
  }

  protected convertFrame(raw: JsonObject, type: string): StreamEvent[] {
    const { __type: exception, ...reported } = readEvent(raw);
    if (type !== "error" && !type.endsWith("Exception")) return this.#event(type, reported);
    const name = type === "error" ? exception : type;
    return createFailureEvents(parseBedrockException({ name, raw }, this.#secrets));
  }

  #event(type: string, fields: Event): StreamEvent[] {
    const { contentBlockIndex: index = 0, start, delta } = fields;
    switch (type) {
      case "messageStart":
        return this.#chunks.begin();
      case "contentBlockStart":
        return this.#startBlock(index, start.toolUse);
      case "contentBlockDelta":
        return this.#delta(this.#blockAt(index), delta);
      case "messageStop":
        this.#messageStop ??= fields;
        break;
      case "metadata":
        this.#metadata ??= fields;
        break;
      default: // `contentBlockStop` and unknown events need no handling.
        return [];
    }
    return this.#messageStop === null || this.#metadata === null
      ? []
      : this.#end(this.#messageStop);
  }

  #startBlock(index: number, use: Event["start"]["toolUse"]): StreamEvent[] {
    if (use === null) return [];
    const { toolUseId: id, name } = use;
    if (name === this.#answerTool) {
      this.#blocks.set(index, { tool: this.#hasAnswerCall ? "spare" : "answer", thought: "" });
      this.#hasAnswerCall = true;
      this.#heldText = "";
      return [];
    }
    this.#blocks.set(index, { tool: this.#toolCount, thought: "" });
    this.#toolCount += 1;
    return [...this.#releaseText(), ...this.#chunks.addTool(id, name)];
  }

  #delta(block: Block, { text, toolUse, reasoningContent }: Event["delta"]): StreamEvent[] {
    if (block.tool === "spare") return [];
    if (block.tool === "answer") return this.#chunks.addText(toolUse.input);
    if (block.tool !== null) return this.#chunks.addToolArguments(toolUse.input, block.tool);
    block.thought += reasoningContent.text;
    const events = [...this.#text(text), ...this.#chunks.addReasoning(reasoningContent.text)];
    const detail = toClaudeReasoningDetail(block.thought, reasoningContent.signature);
    return detail === null
      ? events
      : [...events, ...this.#chunks.addPart({ kind: "detail", detail })];
  }

  #text(text: string): StreamEvent[] {
    if (this.#answerTool === null) return this.#chunks.addText(text);
    if (!this.#hasAnswerCall) this.#heldText += text;
    return [];
  }

  #releaseText(): StreamEvent[] {
    const text = this.#heldText;
    this.#heldText = "";
    return this.#chunks.addText(text);
  }

  #blockAt(index: number): Block {
    const known = this.#blocks.get(index);
    if (known !== undefined) return known;
    const block: Block = { tool: null, thought: "" };
    this.#blocks.set(index, block);
    return block;
  }

  #end(stop: Event): StreamEvent[] {
    const reason = parseConverseFinishReason(stop.stopReason);
    const usage = readConverseUsage(this.#metadata?.usage);
    if (reason === null) return createFailureEvents(INCOMPLETE_RESPONSE_FAILURE, usage);
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [
      ...this.#releaseText(),
      ...this.#chunks.finish(reason),
      ...usageEvents,
      STREAM_END_EVENT,
    ];
  }
}

export function createConverseStreamReader(reader: ConverseReader): StreamReader {
  const decoder = new FrameDecoder();
  const source: FrameSource = {
    events: (bytes) => decoder.push(bytes).map(textFrame),
    flushEvents: () => [],
    get broken() {
      if (!decoder.broken) return null;
      return decoder.overflowed
        ? createEventTooLargeFailure(FRAME_BYTES_MAX)
        : createRetryableFailure("bad_frame");
    },
  };
  return toStreamReader(source, reader);
}

/** Returns a frame as text. An exception becomes the event "error", with its name in `__type`. */
function textFrame({ headers, payload }: EventStreamFrame): StreamFrame {
  const data = new TextDecoder().decode(payload);
  const kind = headers.get(":message-type") ?? "event";
  if (kind === "event") return { name: headers.get(":event-type") ?? "", data };
  const fields =
    kind === "error" ? { message: headers.get(":error-message") ?? "" } : (parseObject(data) ?? {});
  const name = headers.get(kind === "error" ? ":error-code" : ":exception-type") ?? "";
  return { name: "error", data: JSON.stringify({ ...fields, __type: name }) };
}
