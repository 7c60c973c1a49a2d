import { hasNoThoughts, joinThoughts, NO_THOUGHTS } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { objectOf, textOf } from "../../core/json-value.ts";
import { joinNamespaceAndName } from "../../core/tool-calls.ts";
import { BlockSequencer } from "../../core/block-sequencer.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Delta, ToolCallDelta } from "../../core/chunk.ts";
import { ToolCallItemDraft, MessageItemDraft } from "./client-drafts.ts";
import type {
  OutputTextMetadata,
  ItemDraft,
  DraftText,
  ItemDraftContext,
  EventWriter,
} from "./client-drafts.ts";
import { ReasoningItemDraft } from "./client-reasoning.ts";
import type { RequestedOptionalOutput } from "./client-request.ts";
import { readChatUrlCitations, toResponsesLogprobs } from "./client-response-object.ts";
import type { OutputItem } from "./client-response-object.ts";
import type { ToolOrigin } from "./client-tools.ts";

export type OutputItemOptions = {
  readonly shown: RequestedOptionalOutput;
  readonly origins: ReadonlyMap<string, ToolOrigin>;
  readonly storesResponse: boolean;
};

type StartedDraft<D> = { readonly text: string; readonly draft: D };
const NO_EXTRAS: OutputTextMetadata = { logprobs: [], annotations: [] };

/**
 * Creates the items of a response. Only one item is open at a time. During a tool call, new items
 * wait until the call ends.
 */
export class OutputItemWriter {
  readonly #drafts = new BlockSequencer<ItemDraft>();
  readonly #calls = new Map<number, ToolCallItemDraft>();
  readonly #unnamedCalls = new Map<number, { id: string; args: string }>();
  readonly #options: OutputItemOptions;
  readonly #write: EventWriter;
  readonly #idSuffix: string;
  #pendingThoughts: StoredThoughts = NO_THOUGHTS;

  constructor(idSuffix: string, options: OutputItemOptions, write: EventWriter) {
    this.#idSuffix = idSuffix;
    this.#options = options;
    this.#write = write;
  }

  writeDelta(delta: Delta, logprobs: unknown): string {
    let writeText = this.#thought(delta);
    const extras = this.#textExtras(delta, logprobs);
    const content = delta.content ?? "";
    const hasContent = content !== "" || extras !== NO_EXTRAS;
    if (hasContent) writeText += this.text(JSON.stringify(content), extras);
    if (delta.refusal) writeText += this.#refusal(delta.refusal);
    for (const [at, call] of (delta.tool_calls ?? []).entries()) writeText += this.#call(call, at);
    return writeText;
  }

  text(json: string, extras = NO_EXTRAS): string {
    const { text, draft } = this.#message();
    return text + draft.text(json, extras);
  }

  #message(): StartedDraft<MessageItemDraft> {
    const last = this.#drafts.last;
    if (last instanceof MessageItemDraft) return { text: "", draft: last };
    return this.#begin("msg", (place) => new MessageItemDraft(place));
  }

  get openText(): DraftText | null {
    const last = this.#drafts.last;
    return last instanceof MessageItemDraft ? last.openText : null;
  }

  nativeMessage({ phase }: JsonObject): StartedDraft<MessageItemDraft> {
    const knownPhase = phase === "commentary" || phase === "final_answer" ? phase : null;
    return this.#add("msg", (place) => new MessageItemDraft(place, knownPhase));
  }

  nativeCall(raw: JsonObject): StartedDraft<ToolCallItemDraft> {
    const { type, call_id: callId } = raw;
    const kind = type === "custom_tool_call" ? "custom" : "function";
    const name = textOf(raw["name"]);
    const { origins } = this.#options;
    const namespacedOrigin = origins.get(
      joinNamespaceAndName(textOf(raw["namespace"]) || null, name),
    );
    // Some models add a namespace that isn't in the request.
    const origin = {
      namespace: null,
      name,
      ...(namespacedOrigin ?? origins.get(name)),
      kind,
    } as const;
    return this.#add(
      kind === "custom" ? "ctc" : "fc",
      (place) => new ToolCallItemDraft(place, origin, textOf(callId), true),
    );
  }

  addReasoning(): StartedDraft<ReasoningItemDraft> {
    return this.#add("rs", (place) => new ReasoningItemDraft(place, this.#options.shown.encrypted));
  }

  endCall(call: ToolCallItemDraft): string {
    call.isEnded = true;
    return this.#drafts.advance();
  }

  continuesIn(draft: ItemDraft | undefined): boolean {
    return draft === this.#drafts.last && this.openText !== null;
  }

  /**
   * Ends all items. If `isCutOff`, marks the last item as incomplete. Drops items that haven't
   * started.
   */
  end(isCutOff: boolean): string {
    const hasOutput = this.#drafts.parts.some((draft) => !(draft instanceof ReasoningItemDraft));
    const emptyMessage = isCutOff || hasOutput ? "" : this.text('""');
    const thoughts = this.#beginThoughts();
    const { last } = this.#drafts;
    const isItemCutOff = (draft: ItemDraft): boolean =>
      isCutOff && (draft instanceof ToolCallItemDraft || draft === last);
    return emptyMessage + thoughts + this.#drafts.end(isItemCutOff);
  }

  items(): OutputItem[] {
    return this.#drafts.parts.filter((draft) => draft.isOpen).map((draft) => draft.item());
  }

  storedItems(): OutputItem[] {
    return this.#drafts.parts.filter((draft) => draft.isOpen).map((draft) => draft.storedItem());
  }

  get #keepsThoughts(): boolean {
    return this.#options.storesResponse || this.#options.shown.encrypted;
  }

  #thought({ reasoning_content: text = "", reasoning_details: details = [] }: Delta): string {
    const isShown = this.#options.shown.summary && text !== "";
    const written = isShown ? this.#summary(text) : "";
    if (this.#keepsThoughts && (details.length > 0 || text !== "")) {
      this.#addThoughts({ details, extras: {}, text });
    }
    return written;
  }

  #summary(text: string): string {
    const last = this.#drafts.last;
    if (last instanceof ReasoningItemDraft) return last.summary(text);
    const thoughts = this.#takeThoughts();
    const { text: written, draft } = this.addReasoning();
    draft.keep(thoughts);
    return written + draft.summary(text);
  }

  #refusal(text: string): string {
    const { text: written, draft } = this.#message();
    return written + draft.refusal(text);
  }

  #call(piece: ToolCallDelta, at: number): string {
    const { index = at, id = "", extra_content: extra } = piece;
    const { name, args } = calledFunction(piece);
    const knownCall = this.#calls.get(index);
    if (knownCall !== undefined) return knownCall.append(args) + this.#drafts.advance();
    const unnamedCall = this.#unnamedCalls.get(index) ?? { id: "", args: "" };
    const callSoFar = { id: id || unnamedCall.id, args: unnamedCall.args + args };
    if (name === "") {
      this.#unnamedCalls.set(index, callSoFar);
      return "";
    }
    this.#unnamedCalls.delete(index);
    const callId = callSoFar.id || `call_${this.#idSuffix}${index}`;
    if (this.#keepsThoughts && extra !== undefined) {
      this.#addThoughts({ details: [], extras: { [callId]: extra }, text: "" });
    }
    const origin = this.#options.origins.get(name) ?? { kind: "function", namespace: null, name };
    const prefix = origin.kind === "custom" ? "ctc" : "fc";
    const { text, draft } = this.#begin(
      prefix,
      (place) => new ToolCallItemDraft(place, origin, callId),
    );
    this.#calls.set(index, draft);
    return text + draft.append(callSoFar.args);
  }

  #addThoughts(thoughts: StoredThoughts): void {
    const last = this.#drafts.last;
    if (last instanceof ReasoningItemDraft) last.keep(thoughts);
    else this.#pendingThoughts = joinThoughts(this.#pendingThoughts, thoughts);
  }

  #beginThoughts(): string {
    const thoughts = this.#takeThoughts();
    if (hasNoThoughts(thoughts)) return "";
    const { text, draft } = this.addReasoning();
    draft.keep(thoughts);
    return text;
  }

  #takeThoughts(): StoredThoughts {
    const thoughts = this.#pendingThoughts;
    this.#pendingThoughts = NO_THOUGHTS;
    return thoughts;
  }

  #begin<D extends ItemDraft>(
    prefix: string,
    createDraft: (place: ItemDraftContext) => D,
  ): StartedDraft<D> {
    const thoughtEvents = this.#beginThoughts();
    const { text, draft } = this.#add(prefix, createDraft);
    return { text: thoughtEvents + text, draft };
  }

  #add<D extends ItemDraft>(
    prefix: string,
    createDraft: (place: ItemDraftContext) => D,
  ): StartedDraft<D> {
    const index = this.#drafts.parts.length;
    const draft = createDraft({
      id: `${prefix}_${this.#idSuffix}${index}`,
      index,
      write: this.#write,
    });
    return { text: this.#drafts.add(draft), draft };
  }

  #textExtras(delta: Delta, logprobs: unknown): OutputTextMetadata {
    const annotations = readChatUrlCitations(delta.annotations);
    const knownLogprobs = this.#options.shown.logprobs
      ? toResponsesLogprobs(objectOf(logprobs)["content"])
      : [];
    return annotations.length === 0 && knownLogprobs.length === 0
      ? NO_EXTRAS
      : { logprobs: knownLogprobs, annotations };
  }
}

function calledFunction({ function: called, custom }: ToolCallDelta) {
  return custom === undefined
    ? { name: called?.name ?? "", args: called?.arguments ?? "" }
    : { name: custom.name ?? "", args: custom.input ?? "" };
}
