import { textOfLiteral } from "./json-value.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import { outputText } from "./output-text.ts";
import { isRequestCaused } from "./provider.ts";
import type { ProviderFailure, StreamEvent } from "./provider.ts";
import type { Chunk, Completion } from "./chunk.ts";

export function failureWithUsage(
  failure: ProviderFailure,
  { usage, text }: { readonly usage: Usage | null; readonly text: string },
): ProviderFailure {
  if (!isRequestCaused(failure) || (usage === null && text === "")) return failure;
  const output = usage === null ? Math.ceil(estimateTokens(text)) : 0;
  return { ...failure, spent: { usage, output } };
}

/**
 * Returns the final events of a failed stream. Its usage is marked as partial and not charged,
 * unless the request may have caused the failure.
 */
export function failureEvents(failure: ProviderFailure, usage: Usage | null = null): StreamEvent[] {
  const error: StreamEvent = { kind: "error", failure };
  if (usage === null) return [error];
  const partial = !isRequestCaused(failure);
  return [{ kind: "usage", usage, ...(partial && { partial }) }, error];
}

/**
 * Returns the failure for an event larger than `bytesMax`. The request counts as the cause, because
 * other hosts would send such an event too.
 */
export function eventTooLargeFailure(bytesMax: number): ProviderFailure {
  return {
    kind: "refused",
    reason: "event_too_large",
    message: `The response has an event larger than ${bytesMax / 1024 / 1024} MB. Ask for less output in one request.`,
    spent: { usage: null, output: 0 },
  };
}

export function addReportedUsage(
  failure: ProviderFailure,
  events: readonly StreamEvent[],
): ProviderFailure {
  let usage: Usage | null = null;
  let text = "";
  for (const event of events) {
    if (event.kind === "usage") usage = event.partial === true ? null : event.usage;
    else if (event.kind === "text") text += textOfLiteral(event.json);
    else if (event.kind === "native") text += event.text;
    else if (event.kind === "chunk") text += outputTextOfChoices(event.chunk);
  }
  return failureWithUsage(failure, { usage, text });
}

export function outputTextOfChoices({ choices }: Chunk | Completion): string {
  return choices
    .map((choice) => outputText("delta" in choice ? choice.delta : choice.message))
    .join("");
}
