import { SENTENCES } from "./event-sentence.ts";
import type { EventType } from "./event-sentence.ts";

export const EVENT_TYPES = Object.keys(SENTENCES).map(
  (type) => [type as EventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);

/** The types that need attention. The page Events marks them. */
export const LOUD = /\.low|needs|declined|reversed|paused|reached|disabled|alert|expiring|pause.cr/;

export const WEBHOOK_TYPES = [...EVENT_TYPES, ["usage.settled", "usage: settled"]] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number][0];
