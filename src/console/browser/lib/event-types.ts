import { SENTENCES } from "./event-sentence.ts";
import type { EventType } from "./event-sentence.ts";

/** Every event type with its display name. */
export const EVENT_TYPES = Object.keys(SENTENCES).map(
  (type) => [type as EventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);

/** The types that a webhook can select, including the usage stream. */
export const WEBHOOK_TYPES = [...EVENT_TYPES, ["usage.settled", "usage: settled"]] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number][0];
