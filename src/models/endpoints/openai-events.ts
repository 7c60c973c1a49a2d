import { toErrorObject, openRouterError } from "../../shared/http/failure-response.ts";
import type { Failure } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { ResponseHead, Receipt } from "../core/endpoint-adapter.ts";
import type { JsonObject } from "../core/provider.ts";
import { toOpenAiUsage } from "../core/openai-usage.ts";

/**
 * Placeholder for a chunk's text while the surrounding JSON is written. Providers never send this
 * text.
 */
export const TEXT_PLACEHOLDER = "\u0000text\u0000";
const DONE = "data: [DONE]\n\n";

/** The JSON before and after a chunk's text. */
export type EventTemplate = { readonly before: string; readonly after: string };

export function splitAtPlaceholder(json: string): EventTemplate {
  const [before = "", after = ""] = json.split(JSON.stringify(TEXT_PLACEHOLDER));
  return { before, after };
}

/**
 * The stream chunks with usage. `all` is OpenAI's `include_usage`: the last chunk has usage and
 * cost, and all others have `usage: null`, which OpenRouter's SDK rejects.
 */
export type UsageChunkSelection = "none" | "last" | "all";

export function selectUsageChunks(
  wantsUsage: boolean,
  { stream_options: options }: StreamOptionsBody,
): UsageChunkSelection {
  if (wantsUsage) return "last";
  return options?.include_usage === true ? "all" : "none";
}

type StreamOptionsBody = {
  readonly stream_options?: { readonly include_usage?: boolean | null | undefined } | undefined;
};

export class OpenAiStreamWriter {
  readonly ping = ": keep-alive\n\n";
  protected readonly emptyChoice: JsonObject = { delta: { content: "" } };
  readonly #identity: JsonObject;
  readonly #usage: UsageChunkSelection;
  readonly #isOpenRouter: boolean;

  constructor(
    object: string,
    { id, model, created }: ResponseHead,
    usage: UsageChunkSelection,
    isOpenRouter = false,
  ) {
    const identity = { id, object, created, model };
    this.#identity = usage === "all" ? { ...identity, usage: null } : identity;
    this.#usage = usage;
    this.#isOpenRouter = isOpenRouter;
  }

  begin(): string {
    return "";
  }

  protected event(reported: object): string {
    return formatSseEvent({ ...this.#identity, ...reported });
  }

  end({ provider, usage, costMicro }: Receipt): string {
    if (this.#usage === "none") return DONE;
    const reported = { ...toOpenAiUsage(usage), ...costFields(costMicro) };
    return formatSseEvent({ choices: [], ...this.#identity, provider, usage: reported }) + DONE;
  }

  fail(failure: Failure): string {
    if (!this.#isOpenRouter) return formatSseEvent({ error: toErrorObject(failure) });
    const choices = [{ index: 0, ...this.emptyChoice, finish_reason: "error" }];
    return formatSseEvent({ ...this.#identity, choices, error: openRouterError(failure) });
  }
}

/** Returns an event named by its type, as Mistral's SDKs require. */
export function formatNamedSseEvent(object: JsonObject & { readonly type: string }): string {
  return `event: ${object.type}\n${formatSseEvent(object)}`;
}

export function formatSseEvent(object: JsonObject): string {
  return `data: ${JSON.stringify(object)}\n\n`;
}
