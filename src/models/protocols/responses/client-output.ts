import { isEmpty, joinThoughts, NO_THOUGHTS } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { objectOf, textOf } from "../../core/json-value.ts";
import { flatToolName } from "../../core/namespaces.ts";
import { BlockSequencer } from "../../core/block-sequencer.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Delta, ToolCallDelta } from "../../core/chunk.ts";
import { ToolCallDraft, MessageDraft } from "./client-drafts.ts";
import type {
  TextExtras,
  ItemDraft,
  DraftText,
  DraftPosition,
  EventWriter,
} from "./client-drafts.ts";
import { ReasoningDraft } from "./client-reasoning.ts";
import type { VisibleOutput } from "./client-request.ts";
import { urlCitationsOf, responsesLogprobsOf } from "./client-response-object.ts";
import type { OutputItem } from "./client-response-object.ts";
import type { ToolOrigin } from "./client-tools.ts";

export type OutputOptions = {
  readonly shown: VisibleOutput;
  readonly origins: ReadonlyMap<string, ToolOrigin>;
  readonly keeps: boolean;
};

type StartedDraft<D> = { readonly text: string; readonly draft: D };
const NOTHING: TextExtras = { logprobs: [], annotations: [] };

/**
 * Creates the items of a response. Only one is open at a time. An item that starts during a tool
 * call waits until the call ends.
 */
export class Output {
  readonly #drafts = new BlockSequencer<ItemDraft>();
  readonly #calls = new Map<number, ToolCallDraft>();
  readonly #unnamed = new Map<number, { id: string; args: string }>();
  readonly #wanted: OutputOptions;
  readonly #write: EventWriter;
  readonly #own: string;
  #kept: StoredThoughts = NO_THOUGHTS;

  constructor(own: string, wanted: OutputOptions, write: EventWriter) {
    this.#own = own;
    this.#wanted = wanted;
    this.#write = write;
  }

  delta(delta: Delta, logprobs: unknown): string {
    let text = this.#thought(delta);
    const beside = this.#beside(delta, logprobs);
    const content = delta.content ?? "";
    const isAny = content !== "" || beside !== NOTHING;
    if (isAny) text += this.text(JSON.stringify(content), beside);
    if (delta.refusal) text += this.#refusal(delta.refusal);
    for (const [at, call] of (delta.tool_calls ?? []).entries()) text += this.#call(call, at);
    return text;
  }

  text(json: string, beside = NOTHING): string {
    const last = this.#drafts.last;
    if (last instanceof MessageDraft) return last.text(json, beside);
    const { text, draft } = this.#begin("msg", (place) => new MessageDraft(place));
    return text + draft.text(json, beside);
  }

  get openText(): DraftText | null {
    const last = this.#drafts.last;
    return last instanceof MessageDraft ? last.openText : null;
  }

  nativeMessage({ phase }: JsonObject): StartedDraft<MessageDraft> {
    const reported = phase === "commentary" || phase === "final_answer" ? phase : null;
    return this.#add("msg", (place) => new MessageDraft(place, reported));
  }

  nativeCall(raw: JsonObject): StartedDraft<ToolCallDraft> {
    const { type, call_id: callId } = raw;
    const kind = type === "custom_tool_call" ? "custom" : "function";
    const name = textOf(raw["name"]);
    const { origins } = this.#wanted;
    const inside = origins.get(flatToolName(textOf(raw["namespace"]) || null, name));
    // Some models add a namespace that isn't in the request.
    const origin = { namespace: null, name, ...(inside ?? origins.get(name)), kind } as const;
    return this.#add(
      kind === "custom" ? "ctc" : "fc",
      (place) => new ToolCallDraft(place, origin, textOf(callId), true),
    );
  }

  nativeReasoning(): StartedDraft<ReasoningDraft> {
    return this.#add("rs", (place) => new ReasoningDraft(place, this.#wanted.shown.encrypted));
  }

  endCall(call: ToolCallDraft): string {
    call.isEnded = true;
    return this.#drafts.advance();
  }

  goesOnIn(draft: ItemDraft | undefined): boolean {
    return draft === this.#drafts.last && this.openText !== null;
  }

  /** Ends all items. If `cut` is set, the last item is incomplete. Waiting items never start. */
  end(cut: boolean): string {
    let text = "";
    const isSaid = this.#drafts.parts.some((draft) => !(draft instanceof ReasoningDraft));
    if (!cut && !isSaid) text += this.text('""');
    text += this.#beginKept();
    const { last } = this.#drafts;
    return (
      text + this.#drafts.end((draft) => cut && (draft instanceof ToolCallDraft || draft === last))
    );
  }

  items(): OutputItem[] {
    return this.#drafts.parts.filter((draft) => draft.isOpen).map((draft) => draft.item());
  }

  keptItems(): OutputItem[] {
    return this.#drafts.parts.filter((draft) => draft.isOpen).map((draft) => draft.kept());
  }

  get #gathers(): boolean {
    return this.#wanted.keeps || this.#wanted.shown.encrypted;
  }

  #thought({ reasoning_content: text = "", reasoning_details: details = [] }: Delta): string {
    const isShown = this.#wanted.shown.summary && text !== "";
    const written = isShown ? this.#summary(text) : "";
    if (this.#gathers && (details.length > 0 || text !== "")) {
      this.#keep({ details, extras: {}, text });
    }
    return written;
  }

  #summary(text: string): string {
    const last = this.#drafts.last;
    if (last instanceof ReasoningDraft) return last.summary(text);
    const kept = this.#takeKept();
    const { text: written, draft } = this.#add(
      "rs",
      (place) => new ReasoningDraft(place, this.#wanted.shown.encrypted),
    );
    draft.keep(kept);
    return written + draft.summary(text);
  }

  #refusal(text: string): string {
    const last = this.#drafts.last;
    if (last instanceof MessageDraft) return last.refusal(text);
    const { text: written, draft } = this.#begin("msg", (place) => new MessageDraft(place));
    return written + draft.refusal(text);
  }

  #call(piece: ToolCallDelta, at: number): string {
    const { index = at, id = "", extra_content: extra } = piece;
    const { name, args } = calledFunction(piece);
    const known = this.#calls.get(index);
    if (known !== undefined) return this.#append(known, args);
    const unnamedCall = this.#unnamed.get(index) ?? { id: "", args: "" };
    const start = { id: id || unnamedCall.id, args: unnamedCall.args + args };
    if (name === "") {
      this.#unnamed.set(index, start);
      return "";
    }
    this.#unnamed.delete(index);
    const callId = start.id || `call_${this.#own}${index}`;
    if (this.#gathers && extra !== undefined) {
      this.#keep({ details: [], extras: { [callId]: extra }, text: "" });
    }
    const { text, draft } = this.#beginCall(name, callId);
    this.#calls.set(index, draft);
    return text + draft.append(start.args);
  }

  #beginCall(name: string, callId: string): StartedDraft<ToolCallDraft> {
    const origin = this.#wanted.origins.get(name) ?? { kind: "function", namespace: null, name };
    const prefix = origin.kind === "custom" ? "ctc" : "fc";
    return this.#begin(prefix, (place) => new ToolCallDraft(place, origin, callId));
  }

  #append(call: ToolCallDraft, args: string): string {
    const text = call.append(args);
    return text + this.#drafts.advance();
  }

  #keep(thoughts: StoredThoughts): void {
    const last = this.#drafts.last;
    if (last instanceof ReasoningDraft) {
      last.keep(thoughts);
      return;
    }
    this.#kept = joinThoughts(this.#kept, thoughts);
  }

  #beginKept(): string {
    const kept = this.#takeKept();
    if (isEmpty(kept)) return "";
    const { text, draft } = this.#add(
      "rs",
      (place) => new ReasoningDraft(place, this.#wanted.shown.encrypted),
    );
    draft.keep(kept);
    return text;
  }

  #takeKept(): StoredThoughts {
    const kept = this.#kept;
    this.#kept = NO_THOUGHTS;
    return kept;
  }

  #begin<D extends ItemDraft>(
    prefix: string,
    createDraft: (place: DraftPosition) => D,
  ): StartedDraft<D> {
    const before = this.#beginKept();
    const { text, draft } = this.#add(prefix, createDraft);
    return { text: before + text, draft };
  }

  #add<D extends ItemDraft>(
    prefix: string,
    createDraft: (place: DraftPosition) => D,
  ): StartedDraft<D> {
    const index = this.#drafts.parts.length;
    const draft = createDraft({ id: `${prefix}_${this.#own}${index}`, index, write: this.#write });
    return { text: this.#drafts.add(draft), draft };
  }

  #beside(delta: Delta, logprobs: unknown): TextExtras {
    const annotations = urlCitationsOf(delta.annotations);
    const reported = this.#wanted.shown.logprobs
      ? responsesLogprobsOf(objectOf(logprobs)["content"])
      : [];
    return annotations.length === 0 && reported.length === 0
      ? NOTHING
      : { logprobs: reported, annotations };
  }
}

function calledFunction({ function: called, custom }: ToolCallDelta) {
  return custom === undefined
    ? { name: called?.name ?? "", args: called?.arguments ?? "" }
    : { name: custom.name ?? "", args: custom.input ?? "" };
}
