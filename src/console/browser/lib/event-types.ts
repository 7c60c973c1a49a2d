import { SENTENCES } from "./event-sentence.ts";
import type { EventType } from "./event-sentence.ts";

/** Every type of event that the API has, each with its name as people read it. */
export const EVENT_TYPES = Object.keys(SENTENCES).map(
  (type) => [type as EventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);
