import { dollarsOf, micros } from "../../shared/money.ts";
import type { EventRecord, EventType } from "../../shared/event.ts";

export type NotificationText = { readonly subject: string; readonly text: string };

type Data = EventRecord["data"];

export const EMAIL_EVENT_TYPES = [
  "balance.low",
  "key.budget_reached",
  "webhook.disabled",
  "top_up.paused",
  "top_up.disabled",
] as const satisfies readonly EventType[];
export type EmailEventType = (typeof EMAIL_EVENT_TYPES)[number];

const TEXTS: Readonly<Record<EmailEventType, (event: EventRecord) => NotificationText>> = {
  "balance.low": ({ data }) => ({
    subject: "Low balance",
    text: `The balance is ${formatAmount(data, "balance_micro")}, which is below your alert threshold of ${formatAmount(data, "threshold_micro")}. Add credits in the console (Credits).`,
  }),
  "key.budget_reached": ({ subject, data }) => ({
    subject: "A key's budget is used up",
    text: `The key ${subject} has used up its budget of ${formatAmount(data, "budget_micro")}. Raise the budget in the console (Keys), or wait until it resets.`,
  }),
  "webhook.disabled": ({ subject, data }) => ({
    subject: "A webhook is disabled",
    text: `The webhook ${subject} is disabled, because ${data["reason"] === "gone" ? "its URL returned 410" : "it failed for five days"}. Enable it in the console (Webhooks).`,
  }),
  "top_up.paused": ({ data }) => ({
    subject: "Automatic top-up failed",
    text: `Automatic top-up failed (${fieldText(data, "reason")}) and is paused. Check the saved card in the console (Credits).`,
  }),
  "top_up.disabled": ({ data }) => ({
    subject: "Automatic top-up is disabled",
    text: `Automatic top-up is disabled (${fieldText(data, "reason")}). Check the saved card and turn it on again in the console (Credits).`,
  }),
};

export function formatNotification(event: EventRecord): NotificationText | null {
  const type = EMAIL_EVENT_TYPES.find((one) => one === event.type);
  return type === undefined ? null : TEXTS[type](event);
}

export function formatSlackMessage(event: EventRecord): string {
  const { type, subject, actor, data } = event;
  const by = actor.id === null ? "" : ` by ${actor.kind} ${actor.id}`;
  const endUser = /^(?:budget|pause)\./.test(type) ? data["end_user"] : undefined;
  const name = typeof endUser === "string" ? endUser : subject;
  const text = formatNotification(event)?.text ?? `${type}: ${name}${by}`;
  return JSON.stringify({ text: escapeSlack(text) });
}

/** Escapes mentions and links in a text for Slack. */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function formatAmount(data: Data, field: string): string {
  const value = data[field];
  if (typeof value !== "number") return "an unknown amount";
  const dollars = dollarsOf(micros(value));
  const text = Math.abs(dollars) >= 1 ? dollars.toFixed(2) : String(Number(dollars.toFixed(6)));
  return `$${text}`;
}

function fieldText(data: Data, field: string): string {
  const value = data[field];
  return typeof value === "string" ? value.replaceAll("_", " ") : "unknown";
}
