import type { PriceRow } from "../api/types.ts";
import { isUnit, formatPricedAmount } from "../../../shared/units.ts";
import { withAffixes, formatEventFields, formatUtcMinute } from "./changes.ts";
import { STATUS_VERBS } from "./event-sentence.ts";
import { countText, formatBalance, dollarsToMicros, formatCharge } from "./money.ts";

type Details = Readonly<Record<string, unknown>>;
type ActInput = {
  /** The customer's name, or "". */
  readonly whose: string;
  /** The key's name, or the member's email address. */
  readonly name: string;
  readonly details: Details;
  readonly text: (field: string) => string;
};

/**
 * Descriptions of operators' calls: functions, or strings to which the customer's name is added.
 */
const ACTS: Readonly<Record<string, string | ((told: ActInput) => string)>> = {
  "POST /orgs": "created",
  "PATCH /orgs/{id}": organizationText,
  "DELETE /orgs/{id}": "closed",
  "POST /orgs/{id}/restore": "restored",
  "POST /orgs/{id}/invitations": ({ whose, text }) =>
    `invited a person${withAffixes(" to ", whose)}${withAffixes(" as ", text("role"))}`,
  "DELETE /orgs/{id}/invitations/{invitation_id}": "canceled an invitation of",
  "POST /orgs/{id}/domains/{domain}/approve": "approved a domain of",
  "DELETE /orgs/{id}/company-issuer": "removed the company login of",
  "POST /orgs/{id}/members": ({ whose, text }) =>
    `added a member${withAffixes(" to ", whose)}${withAffixes(" as ", text("role"))}`,
  "PATCH /orgs/{id}/members/{member_id}": objectChange("member"),
  "DELETE /orgs/{id}/members/{member_id}": objectAct("removed", "member"),
  "POST /orgs/{id}/members/{member_id}/keys": "created a key of",
  "PATCH /orgs/{id}/keys/{key_id}": objectChange("key"),
  "DELETE /orgs/{id}/keys/{key_id}": objectAct("revoked", "key"),
  "POST /orgs/{id}/keys/{key_id}/rotate": objectAct("rotated", "key"),
  "DELETE /orgs/{id}/sessions/{session_id}": "ended a session of",
  "POST /orgs/{id}/pauses": ({ whose, text }) =>
    `paused requests${withAffixes(" of ", whose)}${withAffixes(": ", text("reason"))}`,
  "DELETE /orgs/{id}/pauses/{pause_id}": "resumed requests of",
  "POST /orgs/{id}/credits": ({ whose, details, text }) => {
    const { amount_micro: micros } = details;
    if (typeof micros !== "number") {
      return `added or corrected credits${withAffixes(" of ", whose)}`;
    }
    const [verb, where] = micros < 0 ? ["took", "from"] : ["added", "to"];
    return `${verb} ${formatBalance(Math.abs(micros))} ${where} ${whose}${withAffixes(": ", text("reference"))}`;
  },
  "POST /orgs/{id}/purchases/{purchase_id}/check": "checked a purchase of",
  "POST /orgs/{id}/purchases/{purchase_id}/refund": ({ whose, details, text }) => {
    const { amount_cents: cents, purchase_dollars: dollars } = details;
    const part = typeof cents === "number" ? formatCharge(cents * 10_000) : "the rest";
    const whole =
      typeof dollars === "number" ? formatCharge(dollarsToMicros(dollars)) : "a purchase";
    const reason = text("reason").replaceAll("_", " ");
    return `refunded ${part} of ${whole}${withAffixes(" to ", whose)}${withAffixes(": ", reason)}`;
  },
  "POST /orgs/{id}/owed": ({ whose, details, text }) => {
    const { forgive_micro: micros } = details;
    const part = typeof micros === "number" ? `${formatBalance(micros)} of a debt` : "a debt";
    return `wrote off ${part}${withAffixes(" of ", whose)}${withAffixes(": ", text("reference"))}`;
  },
  "POST /orgs/{id}/reconcile": "reconciled",
  "POST /orgs/{id}/webhooks/{webhook_id}/test": "sent a test event to a webhook of",
  "POST /orgs/{id}/webhooks/{webhook_id}/replay": "replayed events to a webhook of",
  "POST /orgs/{id}/settle": "settled a request of",
  "POST /orgs/{id}/rebuild-wallet": "rebuilt the wallet of",
  "POST /prices": (told) => pricesText(told, "set the price of", "scheduled prices"),
  "DELETE /prices/{price_id}": (told) =>
    pricesText(told, "removed the price of", "removed a price"),
  "POST /merchants": "created a merchant",
  "POST /merchants/{name}/rotate": "rotated the secret of a merchant",
  "DELETE /merchants/{name}": "removed a merchant",
  "POST /costs": "imported provider bills",
  "POST /rerate": ({ details, text }) =>
    `${details["dry_run"] === true ? "simulated repricing of" : "repriced"} requests${withAffixes(" to ", text("model"))}`,
};

function objectAct(verb: string, noun: string): (told: ActInput) => string {
  return ({ whose, name }) =>
    `${verb} ${name === "" ? `a ${noun}` : `the ${noun} ${name}`}${withAffixes(" of ", whose)}`;
}

function objectChange(noun: string): (told: ActInput) => string {
  return (told) =>
    `${objectAct("changed", noun)(told)}${withAffixes(": ", changesText(told.details))}`;
}

function changesText({ other_fields: others = [], ...fields }: Details): string {
  const names = (others as readonly string[]).join(", ").replaceAll("_", " ");
  return [formatEventFields(fields), names].filter(Boolean).join(", ");
}

function organizationText({ whose, details, text }: ActInput): string {
  const verb = STATUS_VERBS[text("status")] ?? "changed";
  const others = Object.entries(details).filter(([name]) => !/^(?:status|reason)$/.test(name));
  const changes = changesText(Object.fromEntries(others));
  const reasonAndChanges = [text("reason"), changes].filter(Boolean).join("; ");
  return `${verb}${withAffixes(" ", whose)}${withAffixes(": ", reasonAndChanges)}`;
}

function pricesText({ details }: ActInput, verb: string, other: string): string {
  const { prices = [], price_count: count } = details as {
    readonly prices?: readonly PriceRow[];
    readonly price_count?: number;
  };
  if (prices.length === 0) return other;
  const more = (count ?? 0) - prices.length;
  return `${verb} ${prices.map(priceText).join("; ")}${more > 0 ? `; and ${countText(more, "more price")}` : ""}`;
}

function priceText({ list, item, from, percent, price }: PriceRow): string {
  const amounts = Object.entries(price ?? {})
    .filter(([unit, dollars]) => dollars > 0 && !unit.startsWith("cache"))
    .map(([field, dollars]) => `${formatCharge(dollarsToMicros(dollars))} ${pricedText(field)}`)
    .join(", ");
  const where = list === "default" ? "" : ` in the list ${list}`;
  return `${item}${where}: ${amounts || `${percent ?? 0}% above cost`}, from ${formatUtcMinute(from)}`;
}

const TOKENS: Readonly<Record<string, string>> = { input: "in", output: "out" };

function pricedText(field: string): string {
  return isUnit(field) ? `per ${formatPricedAmount(field)}` : (TOKENS[field] ?? field);
}

/** Returns a sentence about an operator's call, or an unknown call's path. */
export function describeOperatorCall({
  operator,
  act,
  organization,
  target_name: name = null,
  details = {},
}: {
  readonly operator: string;
  readonly act: string;
  readonly organization: { readonly id: string; readonly name: string | null } | null;
  readonly target_name?: string | null;
  readonly details?: Details;
}): string {
  const whose = organization === null ? "" : (organization.name ?? organization.id);
  const told = ACTS[act] ?? `called ${act} for`;
  if (typeof told === "string") return `${operator} ${told}${withAffixes(" ", whose)}.`;
  const text = (field: string): string => {
    const value = details[field];
    return typeof value === "string" ? value : "";
  };
  return `${operator} ${told({ whose, name: name ?? "", details, text })}.`;
}
