import {
  hasNoThoughts,
  joinThoughts,
  NO_THOUGHTS,
  serializeThoughts,
} from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { BaseDraft } from "./client-drafts.ts";
import type { ItemDraftContext } from "./client-drafts.ts";
import type { OutputItem, ReasoningSummaryPart } from "./client-response-object.ts";

export class ReasoningItemDraft extends BaseDraft {
  readonly isWhole = true;
  #summary = "";
  #thoughts: StoredThoughts = NO_THOUGHTS;
  readonly #showsEncrypted: boolean;

  constructor(place: ItemDraftContext, isShown: boolean) {
    super(place);
    this.#showsEncrypted = isShown;
  }

  get isEmpty(): boolean {
    return this.#summary === "";
  }

  summary(text: string): string {
    const isFirst = this.#summary === "";
    this.#summary += text;
    return (
      (isFirst ? this.#writePart("added", "") : "") + this.#writeSummary("delta", { delta: text })
    );
  }

  keep(thoughts: StoredThoughts): void {
    this.#thoughts = joinThoughts(this.#thoughts, thoughts);
  }

  item(): OutputItem {
    return this.#showsEncrypted
      ? this.storedItem()
      : { ...this.storedItem(), encrypted_content: null };
  }

  override storedItem(): Extract<OutputItem, { type: "reasoning" }> {
    const { id } = this.position;
    const { status } = this;
    const isDone = status !== "in_progress";
    const summary: ReasoningSummaryPart[] =
      this.isOpen && this.#summary !== "" ? [{ type: "summary_text", text: this.#summary }] : [];
    const hasThoughts = isDone && !hasNoThoughts(this.#thoughts);
    const encrypted_content = hasThoughts ? serializeThoughts(this.#thoughts) : null;
    return { id, type: "reasoning", status, summary, encrypted_content };
  }

  protected begin(): string {
    const text = this.#summary;
    this.#summary = "";
    return text === "" ? "" : this.summary(text);
  }

  protected end(): string {
    if (this.#summary === "") return "";
    const text = this.#writeSummary("done", { text: this.#summary });
    return text + this.#writePart("done", this.#summary);
  }

  #writePart(stage: "added" | "done", text: string): string {
    return this.writeEvent(`response.reasoning_summary_part.${stage}`, {
      summary_index: 0,
      part: { type: "summary_text", text },
    });
  }

  #writeSummary(stage: "delta" | "done", fields: object): string {
    return this.writeEvent(`response.reasoning_summary_text.${stage}`, {
      summary_index: 0,
      ...fields,
    });
  }
}
