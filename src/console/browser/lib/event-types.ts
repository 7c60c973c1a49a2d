import { EVENT_SENTENCES } from "./event-sentence.ts";
import type { ActivityEventType } from "./event-sentence.ts";

export const EVENT_TYPES = Object.keys(EVENT_SENTENCES).map(
  (type) => [type as ActivityEventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);

/** Matches event types that the Events page highlights. */
export const HIGHLIGHTED_EVENT_TYPE_PATTERN =
  /\.low|needs|declined|reversed|paused|reached|disabled|alert|expiring|pause.cr/;

export const WEBHOOK_EVENT_TYPES = [...EVENT_TYPES, ["usage.settled", "usage: settled"]] as const;
/** Groups of event types. A type belongs to the first group whose pattern matches. */
const GROUPS = [
  ["Credits and usage", /^(?:balance|purchase|payment|top_up|usage)\./],
  ["Budgets, quotas and pauses", /^(?:budget|end_user|pause)\.|\.budget_reached$/],
  ["Keys and sessions", /^(?:key|session)\./],
  ["Webhooks", /^webhook\./],
  ["Organization and people", /./],
] as const;

export const WEBHOOK_EVENT_TYPE_GROUPS = GROUPS.map(([title]) => {
  const types = WEBHOOK_EVENT_TYPES.filter(
    ([type]) => GROUPS.find(([, of]) => of.test(type))?.[0] === title,
  );
  return [title, types] as const;
});
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number][0];
