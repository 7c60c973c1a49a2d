import { literalText } from "./json-value.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import { outputText } from "./output-text.ts";
import { isRequestCaused } from "./provider.ts";
import type { ProviderFailure, StreamEvent } from "./provider.ts";
import type { Chunk, Completion } from "./chunk.ts";

/** A failure with what its answer had used, where the request may have provoked it and there was any. */
export function withUsage(
  failure: ProviderFailure,
  { usage, said }: { readonly usage: Usage | null; readonly said: string },
): ProviderFailure {
  if (!isRequestCaused(failure) || (usage === null && said === "")) return failure;
  const output = usage === null ? Math.ceil(estimateTokens(said)) : 0;
  return { ...failure, spent: { usage, output } };
}

/** The last events of a stream that failed: what was reported with it counts where the request may have provoked it. */
export function failureEvents(failure: ProviderFailure, usage: Usage | null = null): StreamEvent[] {
  const error: StreamEvent = { kind: "error", failure };
  return usage === null || !isRequestCaused(failure) ? [error] : [{ kind: "usage", usage }, error];
}

/**
 * The failure of a stream with an event of more than `bytesMax`, which is longer than any that an answer needs: what
 * was asked for made it so, another host would send it too, and what came before it is paid for.
 */
export function eventTooLarge(bytesMax: number): ProviderFailure {
  return {
    kind: "refused",
    reason: "event_too_large",
    message: `The answer holds an event of more than ${bytesMax / 1024 / 1024} MB: ask for less at once.`,
    spent: { usage: null, output: 0 },
  };
}

/** The same for an error among the first events of a stream, of which nothing was handed on. */
export function withUsageIn(
  failure: ProviderFailure,
  events: readonly StreamEvent[],
): ProviderFailure {
  let usage: Usage | null = null;
  let said = "";
  for (const event of events) {
    if (event.kind === "usage") usage = event.partial === true ? null : event.usage;
    else if (event.kind === "text") said += literalText(event.json);
    else if (event.kind === "native") said += event.said;
    else if (event.kind === "chunk") said += textIn(event.chunk);
  }
  return withUsage(failure, { usage, said });
}

/** What the choices of a chunk, or of a completion, say. */
export function textIn({ choices }: Chunk | Completion): string {
  return choices
    .map((choice) => outputText("delta" in choice ? choice.delta : choice.message))
    .join("");
}
