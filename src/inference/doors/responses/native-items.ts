import { isObject, listOf, numberOf, objectOf, textOf } from "../../../providers/json-value.ts";
import { reasoningDetail } from "../../../providers/openai-responses/rules.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { CallDraft, MessageDraft } from "./drafts.ts";
import type { Beside } from "./drafts.ts";
import type { Output, Wanted } from "./output.ts";
import { ReasoningDraft } from "./reasoning-draft.ts";
import { logprobsOf, nativeAnnotationsOf } from "./response-object.ts";

type Item = MessageDraft | CallDraft | ReasoningDraft;

/**
 * OpenAI's own items and events (platform.openai.com, Streaming events) as the client gets them: under our ids
 * and numbers, reasoning in our envelope and only where it was asked for. Items and events that are not named here
 * belong to tools that were never sent, and do not pass.
 */
export class NativeItems {
  readonly #output: Output;
  readonly #wanted: Wanted;
  /** By `output_index` upstream, which counts what is not shown too. */
  readonly #items = new Map<number, Item>();
  readonly #done = new Set<number>();
  /** Where the last text was said. */
  #last: Item | undefined;

  constructor(output: Output, wanted: Wanted) {
    this.#output = output;
    this.#wanted = wanted;
  }

  /** The text of a delta as a JSON literal, where a text just goes on; null for every other event. */
  plainText({ type, delta, output_index: index }: JsonObject): string | null {
    if (type !== "response.output_text.delta") return null;
    this.#last = this.#items.get(Number(index));
    if (this.#wanted.shown.logprobs || !this.goesOn) return null;
    return JSON.stringify(textOf(delta));
  }

  /** Whether nothing else is to be said where the last text was. */
  get goesOn(): boolean {
    return this.#output.goesOnIn(this.#last);
  }

  /** Another piece of the last text, a JSON literal. */
  more(json: string): string {
    return this.#text(this.#last, JSON.parse(json) as string, this.#beside([], []));
  }

  /** What is to be sent for an event. */
  event(event: JsonObject): string {
    const index = numberOf(event["output_index"]) ?? 0;
    switch (event["type"]) {
      case "response.output_item.added":
        return this.#begin(index, objectOf(event["item"]));
      case "response.reasoning_summary_text.delta":
        return this.#summary(index, textOf(event["delta"]));
      case "response.output_item.done":
        return this.#end(index, objectOf(event["item"]));
      case "response.completed":
      case "response.incomplete":
        return this.whole(objectOf(event["response"]));
      default:
        return this.#inside(this.#items.get(index), event);
    }
  }

  /** What an item says. */
  #inside(item: Item | undefined, event: JsonObject): string {
    const delta = textOf(event["delta"]);
    switch (event["type"]) {
      case "response.output_text.delta":
        return this.#text(item, delta, this.#beside(event["logprobs"], []));
      case "response.output_text.annotation.added":
        return this.#text(item, "", this.#beside([], [event["annotation"]]));
      case "response.refusal.delta":
        return item instanceof MessageDraft && delta !== "" ? item.refusal(delta) : "";
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return item instanceof CallDraft ? item.append(delta) : "";
      case "response.reasoning_summary_part.added":
        return item instanceof ReasoningDraft && !item.isEmpty ? item.summary("\n\n") : "";
      default:
        return "";
    }
  }

  /** All items of a response that were not told yet. */
  whole({ output }: JsonObject): string {
    let said = "";
    for (const [index, item] of listOf(output).filter(isObject).entries()) {
      if (this.#done.has(index)) continue;
      said += item["status"] === "incomplete" ? this.#fill(index, item) : this.#end(index, item);
    }
    return said;
  }

  #begin(index: number, raw: JsonObject): string {
    if (this.#items.has(index)) return "";
    switch (raw["type"]) {
      case "message":
        return this.#keep(index, this.#output.nativeMessage(raw));
      case "function_call":
      case "custom_tool_call":
        return this.#keep(index, this.#output.nativeCall(raw));
      default:
        return ""; // reasoning begins once there is something to show
    }
  }

  #keep(index: number, { said, draft }: { readonly said: string; readonly draft: Item }): string {
    this.#items.set(index, draft);
    return said;
  }

  #end(index: number, raw: JsonObject): string {
    if (this.#done.has(index)) return "";
    const said = this.#fill(index, raw);
    this.#done.add(index);
    const item = this.#items.get(index);
    return item instanceof CallDraft ? said + this.#output.endCall(item) : said;
  }

  /** What of an item did not come as a delta. */
  #fill(index: number, raw: JsonObject): string {
    let said = this.#begin(index, raw);
    if (raw["type"] === "reasoning") return said + this.#reasoning(index, raw);
    const item = this.#items.get(index);
    if (item instanceof CallDraft && item.isEmpty) {
      said += item.append(textOf(raw["arguments"] ?? raw["input"]));
    }
    if (!(item instanceof MessageDraft) || !item.isEmpty) return said;
    for (const part of listOf(raw["content"]).filter(isObject)) {
      const { text, refusal, logprobs, annotations } = part;
      if (textOf(refusal) !== "") said += item.refusal(textOf(refusal));
      said += this.#text(item, textOf(text), this.#beside(logprobs, listOf(annotations)));
    }
    return said;
  }

  #reasoning(index: number, raw: JsonObject): string {
    const { summary, encrypted } = this.#wanted.shown;
    const known = this.#items.get(index);
    const parts = listOf(raw["summary"]).filter(isObject);
    const text = parts.map((part) => textOf(part["text"])).join("\n\n");
    const isMissing = summary && text !== "" && known === undefined;
    let said = isMissing ? this.#summary(index, text) : "";
    const detail = encrypted ? reasoningDetail(raw) : null;
    if (detail === null) return said;
    said += this.#beginReasoning(index);
    const item = this.#items.get(index);
    if (item instanceof ReasoningDraft) item.keep({ details: [detail], extras: {} });
    return said;
  }

  #summary(index: number, text: string): string {
    if (!this.#wanted.shown.summary || text === "") return "";
    const began = this.#beginReasoning(index);
    const item = this.#items.get(index);
    return item instanceof ReasoningDraft ? began + item.summary(text) : began;
  }

  #beginReasoning(index: number): string {
    if (this.#items.has(index)) return "";
    return this.#keep(index, this.#output.nativeReasoning());
  }

  #text(item: Item | undefined, text: string, beside: Beside): string {
    if (!(item instanceof MessageDraft)) return "";
    const isAny = text !== "" || beside.logprobs.length > 0 || beside.annotations.length > 0;
    return isAny ? item.text(JSON.stringify(text), beside) : "";
  }

  #beside(logprobs: unknown, annotations: readonly unknown[]): Beside {
    return {
      logprobs: this.#wanted.shown.logprobs ? logprobsOf(logprobs) : [],
      annotations: nativeAnnotationsOf(annotations),
    };
  }
}
