import { failureObject } from "../../../http/failure-response.ts";
import type { Failure } from "../../../lib/failure.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { textOf } from "../../../providers/json-value.ts";
import { wireUsage } from "../../../providers/wire-usage.ts";
import type { Head, Receipt, StreamWriter } from "../door.ts";

/** Stands for a text while the JSON around it is written; no upstream can know it. */
const MARK = "\u0000text\u0000";
const DONE = "data: [DONE]\n\n";

/** Legacy text chunks as server-sent events; `includeUsage`: the last one tells usage and cost. */
export function textStream(head: Head, includeUsage: boolean): StreamWriter {
  return new TextStream(head, includeUsage);
}

type Choice = {
  readonly index?: unknown;
  readonly delta?: { readonly content?: unknown; readonly refusal?: unknown };
  readonly finish_reason?: unknown;
};

class TextStream implements StreamWriter {
  readonly ping = ": keep-alive\n\n";
  readonly #identity: JsonObject;
  readonly #includeUsage: boolean;
  /** What stands around a text, by choice. */
  readonly #around = new Map<number, { readonly before: string; readonly after: string }>();

  constructor({ id, model, created }: Head, includeUsage: boolean) {
    const identity = { id, object: "text_completion", created, model };
    this.#identity = includeUsage ? { ...identity, usage: null } : identity;
    this.#includeUsage = includeUsage;
  }

  begin(): string {
    return "";
  }

  /** Its choices that say something or end; roles and reasoning have no place here. */
  chunk(chunk: JsonObject): string {
    const given = Array.isArray(chunk["choices"]) ? (chunk["choices"] as Choice[]) : [];
    const choices = given.flatMap(({ index, delta, finish_reason }) => {
      const text = textOf(delta?.content) || textOf(delta?.refusal);
      const finish = finish_reason ?? null;
      if (text === "" && finish === null) return [];
      return [{ text, index, logprobs: null, finish_reason: finish }];
    });
    return choices.length === 0 ? "" : this.#event({ choices });
  }

  text(index: number, json: string): string {
    const around = this.#around.get(index) ?? this.#surroundings(index);
    return around.before + json + around.after;
  }

  end({ usage, costMicro }: Receipt): string {
    if (!this.#includeUsage) return DONE;
    const told = { ...wireUsage(usage, "chat"), cost_micro: costMicro };
    return this.#event({ choices: [] }, { usage: told }) + DONE;
  }

  fail(failure: Failure): string {
    return `data: ${JSON.stringify({ error: failureObject(failure) })}\n\n`;
  }

  #event(object: JsonObject, over: JsonObject = {}): string {
    return `data: ${JSON.stringify({ ...this.#identity, ...object, ...over })}\n\n`;
  }

  #surroundings(index: number): { readonly before: string; readonly after: string } {
    const choice = { text: MARK, index, logprobs: null, finish_reason: null };
    const [before = "", after = ""] = this.#event({ choices: [choice] }).split(
      JSON.stringify(MARK),
    );
    const around = { before, after };
    this.#around.set(index, around);
    return around;
  }
}
