import type { Event } from "../api/types.ts";
import { budgetWindowText } from "./budgets.ts";
import {
  withAffixes,
  formatChanges,
  formatUtcMinute,
  findOnlyChange,
  storedValueText,
} from "./changes.ts";
import { memberName } from "./names.ts";
import { formatBalance, formatPercent, formatCharge } from "./money.ts";

export type ActivityEventType = Event["type"];
/** Returns the name of a key, member or webhook by ID. */
export type NameOf = (id: string) => string;

/** Returns an event as a sentence for the Activity log. */
export function describeEvent(event: Event, nameOf: NameOf): string {
  const sentence = EVENT_SENTENCES[event.type](inputOf(event, nameOf));
  return `${sentence.replaceAll(/\s+/g, " ").trim()}.`;
}

type SentenceInput = ReturnType<typeof inputOf>;

function inputOf(event: Event, nameOf: NameOf) {
  const { data, actor, subject } = event;
  return {
    who: describeActor(actor, nameOf),
    what: typeof data["email"] === "string" ? data["email"] : subjectOf(event, nameOf),
    /** The owner of the event's budget or pause. */
    owner: ownerOf(event, nameOf),
    organization: nameOf(subject) === subject ? "the organization" : nameOf(subject),
    changes: formatChanges(data["changes"], nameOf),
    changeOf: (field: string) => findOnlyChange(data["changes"], field),
    text: (name: string) => ((data[name] ?? null) === null ? "" : storedValueText(data[name])),
    money: (name: string) => (typeof data[name] === "number" ? formatCharge(data[name]) : ""),
    left: (name: string) => (typeof data[name] === "number" ? formatBalance(data[name]) : ""),
    time: (name: string) => (typeof data[name] === "string" ? formatUtcMinute(data[name]) : ""),
    share: (name: string) => (typeof data[name] === "number" ? formatPercent(data[name]) : "part"),
  };
}

/** Doesn't look up a name for an end user's ID, which can look like a member's. */
function subjectOf({ type, subject }: Event, nameOf: NameOf): string {
  return type.startsWith("end_user.") ? subject : memberName(nameOf(subject));
}

export function describeActor({ kind, id }: Event["actor"], nameOf: NameOf): string {
  if (id === null) return "Turnpike";
  if (kind === "operator") return `${id} (operator)`;
  return kind === "session" ? `A session (${id})` : memberName(nameOf(id));
}

const CLOSINGS: Readonly<Record<string, string>> = { on: "closed", off: "restored" };
/** Verbs for an organization's new status. */
export const STATUS_VERBS: Readonly<Record<string, string>> = {
  suspended: "suspended",
  active: "resumed",
};

export const EVENT_SENTENCES: Readonly<
  Record<ActivityEventType, (input: SentenceInput) => string>
> = {
  "balance.credited": ({ who, text, money, left: rest }) => {
    const isTaken = text("amount_micro").startsWith("-");
    const amount = money("amount_micro").replace("−", "");
    const reference = text("reference").replace(/^owed:.*/, "a payment was refunded or disputed");
    return `${who} ${isTaken ? "took" : "added"} ${amount}${withAffixes(": ", reference)}${withAffixes("; balance ", rest("balance_micro"))}`;
  },
  "balance.charged": ({ who, what, money }) =>
    `${who} recorded a missing charge of ${money("charged_micro")} for ${what}`,
  "balance.low": ({ money, left: rest }) =>
    `Balance is below ${money("threshold_micro")}${withAffixes(": ", rest("balance_micro"), " left")}`,
  "purchase.created": ({ who, money }) =>
    `${who} ordered credits${withAffixes(" of ", money("amount_micro"))}`,
  "purchase.needs_customer": ({ money }) =>
    `The purchase${withAffixes(" of ", money("amount_micro"))} needs your confirmation`,
  "purchase.credited": ({ money, left: rest }) =>
    `The purchase${withAffixes(" of ", money("amount_micro"))} was paid and credited${withAffixes("; balance ", rest("balance_micro"))}`,
  "purchase.declined": ({ money, text }) =>
    `The purchase${withAffixes(" of ", money("amount_micro"))} was declined${withAffixes(": ", text("error") || text("reason"))}`,
  "purchase.expired": ({ money }) =>
    `The purchase${withAffixes(" of ", money("amount_micro"))} was not paid in time`,
  "payment.reversed": ({ money }) =>
    `A payment was refunded or disputed${withAffixes(": ", money("back_micro"), " of credits removed")}`,
  "payment.reinstated": ({ money }) =>
    `A refund or dispute was reversed${withAffixes("; still refunded: ", money("back_micro"))}`,
  "payment.forgiven": ({ who, money }) =>
    `${who} wrote off a debt${withAffixes(": ", money("amount_micro"))}`,
  "top_up.paused": ({ text, time }) =>
    `Automatic top-up is paused${withAffixes(" until ", time("until"))}${withAffixes(": ", text("reason").replaceAll("_", " "))}`,
  "top_up.disabled": ({ text }) =>
    `Automatic top-up is off${withAffixes(": ", text("reason").replaceAll("_", " "))}`,
  "end_user.alert": ({ what, text, money, share }) =>
    `${what} has used ${share("threshold")} of ${quotaOf(text("period"))}${withAffixes(" of ", money("quota_micro"))}`,
  "end_user.quota_reached": ({ what, text, money }) =>
    `${what} has used up ${quotaOf(text("period"))}${withAffixes(" of ", money("quota_micro"))}; new requests are rejected until ${endOf(text("period"))}`,
  "end_user.changed": ({ who, what, changes }) =>
    `${who} changed ${what}${withAffixes(": ", changes)}`,
  "key.created": ({ who, what, text, money }) =>
    `${who} created ${text("name") || what}${withAffixes(": ", text("rpm_limit"), " requests per 60 s")}${withAffixes(", ", money("budget_micro"), ofPeriod(text("budget_period")))}${withAffixes(", only ", text("allowed_models"))}`,
  "key.changed": ({ who, what, changes }) => `${who} changed ${what}${withAffixes(": ", changes)}`,
  "key.rotated": ({ what, time }) =>
    `${what} has a new secret${withAffixes("; the old one works until ", time("others_end_at"))}`,
  "key.revoked": ({ who, what }) => `${who} revoked ${what}`,
  "key.expiring": ({ what, time }) => `${what} expires${withAffixes(" ", time("expires_at"))}`,
  "key.budget_reached": ({ what, text, money, left: rest }) =>
    `${what} reached its budget${withAffixes(" of ", money("budget_micro"))}${ofPeriod(text("period"))}${withAffixes("; ", rest("left_micro"), " is left")}`,
  "budget.reached": ({ owner, text }) =>
    `The budget of ${owner} ${budgetWindowText(text("window"))} is used up`,
  "budget.alert": ({ owner, text }) =>
    `The budget of ${owner} ${budgetWindowText(text("window"))} has reached its alert threshold`,
  "pause.created": ({ who, owner, text, time }) =>
    `${who} paused ${owner}${withAffixes(" until ", time("until"))}${withAffixes(": ", text("reason"))}`,
  "pause.ended": ({ who, owner, text }) =>
    text("cause") === "expired" ? `The pause of ${owner} is over` : `${who} resumed ${owner}`,
  "session.ended": ({ who, what }) => `${who} ended the session ${what}`,
  "session.budget_reached": ({ what, money }) =>
    `The session ${what} reached its budget${withAffixes(" of ", money("budget_micro"))}`,
  "member.created": ({ who, what, text }) => `${who} added ${what} as ${text("role") || "member"}`,
  "member.changed": ({ who, what, changes }) =>
    `${who} changed ${what}${withAffixes(": ", changes)}`,
  "member.removed": ({ who, what }) => `${who} removed ${what}`,
  "invitation.created": ({ who, text }) =>
    `${who} created an invitation${withAffixes(" as ", text("role"))}`,
  "invitation.ended": ({ who, what }) => `${who} canceled the invitation ${what}`,
  "settings.changed": ({ who, changes }) =>
    `${who} changed the settings${withAffixes(": ", changes)}`,
  "organization.created": ({ who, what, text }) =>
    `${who} created ${text("name") || what}${withAffixes(" in ", text("region").toUpperCase())}`,
  "organization.changed": ({ who, organization, text, changes, changeOf }) => {
    const status = STATUS_VERBS[changeOf("status")];
    if (status !== undefined) return `${who} ${status} ${organization}`;
    const verb = text("removed") ? "removed" : CLOSINGS[text("closed")];
    return `${who} ${verb ?? "changed"} ${organization}${withAffixes(": ", changes)}`;
  },
  "organization.wallet_rebuilt": ({ who, left: rest }) =>
    `${who} restored the balance from the database${withAffixes(": ", rest("balance_micro"))}`,
  "organization.events_left_out": ({ text }) =>
    `Some${withAffixes(" ", text("type"))} events of one hour are not listed${withAffixes(": ", text("left_out"))}`,
  "operator.viewed": ({ who }) => `${who} viewed this organization as its owner`,
  "webhook.created": ({ who, text }) => `${who} added the webhook ${text("host")}`,
  "webhook.changed": ({ who, what, changes }) =>
    `${who} changed the webhook ${what}${withAffixes(": ", changes)}`,
  "webhook.rotated": ({ who, what, time }) =>
    `${who} gave the webhook ${what} a new secret${withAffixes("; the old one signs until ", time("previous_until"))}`,
  "webhook.deleted": ({ who, text }) => `${who} deleted the webhook ${text("host")}`,
  "webhook.disabled": ({ what, text }) =>
    `The webhook ${what} is off: ${text("reason") === "gone" ? "it returned 410" : "no successful delivery for five days"}`,
};

const OWNERS: Readonly<Record<string, string>> = {
  organization: "the organization",
  member: "a member",
  key: "a key",
  session: "a session",
  end_user: "an end user",
};

function ownerOf({ data, subject }: Event, nameOf: NameOf): string {
  const scope = storedValueText(data["scope"]);
  if (typeof data["end_user"] === "string") return data["end_user"];
  const isNamed = /^(?:key|member)$/.test(scope) && nameOf(subject) !== subject;
  return isNamed ? nameOf(subject) : (OWNERS[scope] ?? scope);
}

const PERIODS: Readonly<Record<string, readonly [quota: string, end: string]>> = {
  day: ["today's quota", "00:00 UTC"],
  week: ["this week's quota", "Monday, 00:00 UTC"],
  month: ["this month's quota", "the first of the next month, 00:00 UTC"],
};
/** An alert's period is a month (2026-11) or a day (2026-11-28). */
function quotaOf(period: string): string {
  const dated = period.length < 10 ? "its monthly quota" : "its daily quota";
  return PERIODS[period]?.[0] ?? (period === "" ? "its total quota" : dated);
}
const endOf = (period: string): string => PERIODS[period]?.[1] ?? "the quota is raised";
const ofPeriod = (period: string): string => (period === "" ? "" : ` a ${period}`);
