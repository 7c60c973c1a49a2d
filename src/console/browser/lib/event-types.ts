import { SENTENCES } from "./event-sentence.ts";
import type { EventType } from "./event-sentence.ts";

/** Every event type with its display name. */
export const EVENT_TYPES = Object.keys(SENTENCES).map(
  (type) => [type as EventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);
