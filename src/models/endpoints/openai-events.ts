import { failureObject } from "../../shared/http/failure-response.ts";
import type { Failure } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { ResponseHead, Receipt } from "../core/endpoint-adapter.ts";
import type { JsonObject } from "../core/provider.ts";
import { openAiUsage } from "../core/openai-usage.ts";

/** A placeholder for a text while the JSON around it is written. Upstreams can't guess it. */
export const MARK = "\u0000text\u0000";
const DONE = "data: [DONE]\n\n";

export type EventTemplate = { readonly before: string; readonly after: string };

export function splitAtMark(written: string): EventTemplate {
  const [before = "", after = ""] = written.split(JSON.stringify(MARK));
  return { before, after };
}

/** An OpenAI stream with our ID and model. `includeUsage`: the last event has usage and cost. */
export class OpenAiStream {
  readonly ping = ": keep-alive\n\n";
  /** id, object, created, model and usage, the same in every event. */
  readonly #identity: JsonObject;
  readonly #includeUsage: boolean;

  constructor(object: string, { id, model, created }: ResponseHead, includeUsage: boolean) {
    const identity = { id, object, created, model };
    this.#identity = includeUsage ? { ...identity, usage: null } : identity;
    this.#includeUsage = includeUsage;
  }

  begin(): string {
    return "";
  }

  protected event(reported: object): string {
    return eventOf({ ...reported, ...this.#identity });
  }

  end({ usage, costMicro }: Receipt): string {
    if (!this.#includeUsage) return DONE;
    const reported = { ...openAiUsage(usage), ...costFields(costMicro) };
    return eventOf({ choices: [], ...this.#identity, usage: reported }) + DONE;
  }

  fail(failure: Failure): string {
    return eventOf({ error: failureObject(failure) });
  }
}

function eventOf(object: JsonObject): string {
  return `data: ${JSON.stringify(object)}\n\n`;
}
