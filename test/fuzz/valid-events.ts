import type { StreamEvent } from "../../src/models/core/provider.ts";
import { mustHold } from "./find-faults.ts";

/**
 * Checks any stream's events: chunks have choices, usage has whole numbers, and nothing follows the
 * end.
 */
export function mustBeValidStream(events: readonly StreamEvent[]): void {
  const last = events.findIndex((event) => event.kind === "end" || event.kind === "error");
  mustHold(last === -1 || last === events.length - 1, "events after the end", events);
  for (const event of events) {
    if (event.kind === "text") {
      mustHold(typeof JSON.parse(event.json) === "string", "no text", event);
    }
    if (event.kind === "chunk") {
      mustHold(Array.isArray(event.chunk["choices"]), "no choices", event);
    }
    if (event.kind !== "usage") continue;
    const counts = Object.values(event.usage);
    mustHold(
      counts.every((one) => Number.isSafeInteger(one) && one >= 0),
      "no usage",
      event,
    );
  }
}
