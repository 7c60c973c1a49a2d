import { isObject, parseStringLiteral } from "../../core/json-value.ts";
import type { SequencedPart } from "../../core/block-sequencer.ts";
import { CustomInputReader } from "./client-custom-input.ts";
import type {
  Logprob,
  OutputItem,
  OutputMessagePhase,
  RefusalPart,
  TextPart,
  UrlCitation,
} from "./client-response-object.ts";
import { parseCustomToolArguments } from "./client-tools.ts";
import type { ToolOrigin } from "./client-tools.ts";

export type EventWriter = (type: string, fields: object) => string;
export type ItemDraftContext = {
  readonly id: string;
  readonly index: number;
  readonly write: EventWriter;
};

/** An output item that is being written. */
export type ItemDraft = SequencedPart & { item(): OutputItem; storedItem(): OutputItem };

export abstract class BaseDraft implements ItemDraft {
  protected readonly position: ItemDraftContext;
  protected status: OutputItem["status"] = "in_progress";
  isOpen = false;

  constructor(place: ItemDraftContext) {
    this.position = place;
  }

  abstract get isWhole(): boolean;
  abstract item(): OutputItem;

  storedItem(): OutputItem {
    return this.item();
  }
  protected abstract begin(): string;
  protected abstract end(): string;

  open(): string {
    const { write, index } = this.position;
    const added = write("response.output_item.added", { output_index: index, item: this.item() });
    this.isOpen = true;
    return added + this.begin();
  }

  close(isCutOff: boolean): string {
    const ending = this.end();
    this.status = isCutOff ? "incomplete" : "completed";
    return ending + this.done();
  }

  protected done(): string {
    const { write, index } = this.position;
    return write("response.output_item.done", { output_index: index, item: this.item() });
  }

  protected writeEvent(type: string, fields: object): string {
    if (!this.isOpen) return "";
    const { id, index, write } = this.position;
    return write(type, { item_id: id, output_index: index, ...fields });
  }
}

/** A text stored as JSON escapes it, so most pieces are appended without parsing. */
type GrowingText = {
  readonly kind: "text";
  literal: string;
  logprobs: Logprob[];
  annotations: UrlCitation[];
};
type GrowingPart = GrowingText | { readonly kind: "refusal"; refusal: string };

export type OutputTextMetadata = {
  readonly logprobs: Logprob[];
  readonly annotations: UrlCitation[];
};

/** An open text to which deltas are added. */
export type DraftText = { readonly fields: object; append(json: string): void };

export class MessageItemDraft extends BaseDraft {
  readonly isWhole = true;
  readonly #parts: GrowingPart[] = [];
  readonly #phase: OutputMessagePhase | null;

  constructor(place: ItemDraftContext, phase: OutputMessagePhase | null = null) {
    super(place);
    this.#phase = phase;
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  text(json: string, { logprobs, annotations }: OutputTextMetadata): string {
    let text = "";
    let part = this.#parts.at(-1);
    if (part?.kind !== "text") {
      part = { kind: "text", literal: "", logprobs: [], annotations: [] };
      text += this.#startPart(part);
    }
    part.literal += json.slice(1, -1);
    part.logprobs.push(...logprobs);
    const hasContent = json !== '""' || logprobs.length > 0;
    if (hasContent) {
      const delta = parseStringLiteral(json);
      text += this.#writeContentEvent("response.output_text.delta", { delta, logprobs });
    }
    for (const annotation of annotations) {
      const annotation_index = part.annotations.push(annotation) - 1;
      const fields = { annotation, annotation_index };
      text += this.#writeContentEvent("response.output_text.annotation.added", fields);
    }
    return text;
  }

  get openText(): DraftText | null {
    const part = this.#parts.at(-1);
    if (!this.isOpen || part?.kind !== "text") return null;
    return {
      fields: {
        item_id: this.position.id,
        output_index: this.position.index,
        content_index: this.#parts.length - 1,
      },
      append: (json) => {
        part.literal += json.slice(1, -1);
      },
    };
  }

  refusal(text: string): string {
    let written = "";
    let part = this.#parts.at(-1);
    if (part?.kind !== "refusal") {
      part = { kind: "refusal", refusal: "" };
      written += this.#startPart(part);
    }
    part.refusal += text;
    if (text === "") return written;
    return written + this.#writeContentEvent("response.refusal.delta", { delta: text });
  }

  item(): OutputItem {
    const { id } = this.position;
    const content = this.isOpen ? this.#parts.map(toContentPart) : [];
    const phase = this.#phase === null ? {} : { phase: this.#phase };
    return { id, type: "message", status: this.status, role: "assistant", content, ...phase };
  }

  protected begin(): string {
    const parts = this.#parts.splice(0);
    let text = "";
    for (const part of parts) {
      text += this.#startPart(emptyPart(part));
      if (part.kind === "refusal") text += this.refusal(part.refusal);
      else text += this.text(`"${part.literal}"`, part);
    }
    return text;
  }

  protected end(): string {
    return this.#endPart();
  }

  #startPart(part: GrowingPart): string {
    const ended = this.#endPart();
    this.#parts.push(part);
    const added = { part: toContentPart(part) };
    return ended + this.#writeContentEvent("response.content_part.added", added);
  }

  #endPart(): string {
    const part = this.#parts.at(-1);
    if (part === undefined) return "";
    const finalPart = toContentPart(part);
    const done =
      finalPart.type === "refusal"
        ? this.#writeContentEvent("response.refusal.done", { refusal: finalPart.refusal })
        : this.#writeContentEvent("response.output_text.done", {
            text: finalPart.text,
            logprobs: finalPart.logprobs,
          });
    return done + this.#writeContentEvent("response.content_part.done", { part: finalPart });
  }

  #writeContentEvent(type: string, fields: object): string {
    return this.writeEvent(type, { content_index: this.#parts.length - 1, ...fields });
  }
}

function emptyPart({ kind }: GrowingPart): GrowingPart {
  return kind === "refusal"
    ? { kind, refusal: "" }
    : { kind, literal: "", logprobs: [], annotations: [] };
}

function toContentPart(part: GrowingPart): TextPart | RefusalPart {
  if (part.kind === "refusal") return { type: "refusal", refusal: part.refusal };
  const { logprobs, annotations } = part;
  const text = parseStringLiteral(`"${part.literal}"`);
  return { type: "output_text", text, annotations: [...annotations], logprobs: [...logprobs] };
}

export class ToolCallItemDraft extends BaseDraft {
  readonly #origin: ToolOrigin;
  readonly #callId: string;
  #arguments = "";
  readonly #inputReader: CustomInputReader | null;
  readonly #isNative: boolean;
  isEnded = false;

  constructor(place: ItemDraftContext, origin: ToolOrigin, callId: string, isNative = false) {
    super(place);
    this.#origin = origin;
    this.#callId = callId;
    this.#isNative = isNative;
    this.#inputReader = origin.kind === "custom" && !isNative ? new CustomInputReader() : null;
  }

  get isEmpty(): boolean {
    return this.#arguments === "";
  }

  get isWhole(): boolean {
    if (this.#isNative) return this.isEnded;
    if (!this.#arguments.trimEnd().endsWith("}")) return false;
    try {
      return isObject(JSON.parse(this.#arguments));
    } catch {
      return false;
    }
  }

  append(args: string): string {
    if (this.status !== "in_progress") return ""; // Only white space can follow the JSON object.
    this.#arguments += args;
    return this.#writeDelta(this.#inputReader?.next(args) ?? args);
  }

  item(): OutputItem {
    const { id } = this.position;
    const { name, namespace } = this.#origin;
    const called = { call_id: this.#callId, name, ...(namespace !== null && { namespace }) };
    const { status } = this;
    const value = this.isOpen ? this.#value() : "";
    return this.#isFunction
      ? { id, type: "function_call", status, ...called, arguments: value }
      : { id, type: "custom_tool_call", status, ...called, input: value };
  }

  override close(isCutOff: boolean): string {
    if (isCutOff && !this.isWhole) {
      this.status = "incomplete";
      return "";
    }
    return super.close(false);
  }

  protected begin(): string {
    return this.#writeDelta(this.#value());
  }

  protected end(): string {
    const rest = this.#finalDelta();
    const value = this.#value();
    return (
      rest +
      (this.#isFunction
        ? this.writeEvent("response.function_call_arguments.done", {
            name: this.#origin.name,
            arguments: value,
          })
        : this.writeEvent("response.custom_tool_call_input.done", { input: value }))
    );
  }

  get #isFunction(): boolean {
    return this.#origin.kind === "function";
  }

  #value(): string {
    return this.#inputReader?.text ?? this.#arguments;
  }

  #finalDelta(): string {
    if (this.#inputReader === null) {
      if (!this.#isFunction || this.#arguments.trim() !== "") return "";
      this.#arguments = "{}";
      return this.#writeDelta(this.#arguments);
    }
    return this.#writeDelta(this.#inputReader.end(parseCustomToolArguments(this.#arguments)));
  }

  #writeDelta(delta: string): string {
    if (delta === "") return "";
    const type = this.#isFunction
      ? "response.function_call_arguments.delta"
      : "response.custom_tool_call_input.delta";
    return this.writeEvent(type, { delta });
  }
}
