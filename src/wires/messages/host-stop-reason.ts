import type { FinishReason } from "../../core/chunk-builder.ts";
import { cleanedMessage } from "../../core/cleaned-message.ts";
import { objectOf, textOf } from "../../core/json-value.ts";

/** A `stop_reason` in OpenAI's words; after a tool call, "stop" is read as "tool_calls". */
export function finishOf(stopReason: unknown): FinishReason {
  if (stopReason === "max_tokens" || stopReason === "model_context_window_exceeded") {
    return "length";
  }
  return stopReason === "refusal" ? "content_filter" : "stop";
}

/** Why it was refused (`stop_details`), as a client may read it; "" when it does not say. */
export function refusalOf(details: unknown, secret: string): string {
  return cleanedMessage(textOf(objectOf(details)["explanation"]), secret);
}
