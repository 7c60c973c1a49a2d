import { formatAmount, budgetWindowText } from "./budgets.ts";
import type { BudgetUnit } from "./budgets.ts";
import { formatBalance, dollarsToMicros } from "./money.ts";

type Fields = Readonly<Record<string, unknown>>;
type Change = { readonly from?: unknown; readonly to?: unknown };

/** Adds a prefix and suffix to a text that isn't empty. */
export function withAffixes(prefix: string, text: string, suffix = ""): string {
  return text === "" ? "" : `${prefix}${text}${suffix}`;
}

export function formatUtcMinute(time: string): string {
  return `${time.slice(0, 16).replace("T", " ")} UTC`;
}

const LABELS: Readonly<Record<string, string>> = {
  may_hold: "placing holds",
  rpm_limit: "requests per 60 s",
  tpm_limit: "tokens per 60 s",
  auto_top_up: "automatic top-up",
};

function labelOf(field: string): string {
  const name = snake(field);
  return LABELS[name] ?? name.replace(/_(?:micro|dollars)$|^allowed_/g, "").replaceAll("_", " ");
}

function snake(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns a field's new value if no other field changed, else "". */
export function findOnlyChange(changes: unknown, field: string): string {
  const [[name, change] = [], ...others] = Object.entries(fieldsOf(changes));
  return name === field && others.length === 0 ? storedValueText(fieldsOf(change)["to"] ?? "") : "";
}

/** Returns an event's changed fields as text, with new and old values. */
export function formatChanges(changes: unknown, nameOf: (id: string) => string): string {
  return Object.entries(fieldsOf(changes))
    .flatMap(([field, change]) => splitPolicyChange(field, fieldsOf(change)))
    .map(([field, { from = null, to = null }]) => {
      const value = (one: unknown): string =>
        typeof one === "string" && field.endsWith("_id") ? nameOf(one) : valueOf(field, one);
      const name = labelOf(field);
      return from === null && to === null ? name : `${name} ${value(to)} (before: ${value(from)})`;
    })
    .join(", ");
}

export function formatEventFields(fields: Fields): string {
  return Object.entries(fields)
    .map(([field, value]) => `${labelOf(field)} ${valueOf(field, value)}`)
    .join(", ");
}

function splitPolicyChange(field: string, change: Change): readonly (readonly [string, Change])[] {
  if (!isPolicy(field)) return [[field, change]];
  const [from, to] = [fieldsOf(change.from), fieldsOf(change.to)];
  return Object.keys({ ...from, ...to })
    .map((name) => [name, { from: from[name] ?? "all", to: to[name] ?? "all" }] as const)
    .filter(([, one]) => storedValueText(one.from) !== storedValueText(one.to));
}

function isPolicy(field: string): boolean {
  return snake(field).endsWith("policy");
}

function valueOf(field: string, stored: unknown): string {
  const [name, value] = [snake(field), parseStored(stored)];
  if (name === "may_hold") return storedValueText(Boolean(value));
  if (value === null) return /^allowed_|policy$/.test(name) ? "all" : "none";
  if (name === "auto_top_up") return topUpText(fieldsOf(value));
  if (isPolicy(name)) return policyText(fieldsOf(value));
  if (name === "budgets") return budgetsText(value);
  if (typeof value === "number") return numberText(name, value);
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)
    ? formatUtcMinute(value)
    : storedValueText(value);
}

function numberText(name: string, value: number): string {
  if (name.endsWith("_micro")) return formatBalance(value);
  if (name.endsWith("_at")) return formatUtcMinute(new Date(value).toISOString());
  return name.endsWith("_dollars") ? formatBalance(dollarsToMicros(value)) : storedValueText(value);
}

function policyText(policy: Fields): string {
  const lists = Object.entries(policy).filter(([, list]) => list !== null);
  return formatEventFields(Object.fromEntries(lists)) || "all";
}

function topUpText(settings: Fields): string {
  const amount = (name: string): string => formatBalance(Number(settings[`${name}Micro`] ?? 0));
  return `${amount("amount")} below ${amount("below")}, at most ${amount("mostPerMonth")} a month`;
}

type StoredBudget = { readonly unit: BudgetUnit; readonly amount: number; readonly window: string };

function budgetsText(budgets: unknown): string {
  if (!Array.isArray(budgets)) return storedValueText(budgets);
  const texts = (budgets as readonly StoredBudget[]).map(({ unit, amount, window }) => {
    return `${formatAmount(unit, unit === "dollars" ? amount / 1e6 : amount, formatBalance)} ${budgetWindowText(window)}`;
  });
  return texts.join(" and ") || "none";
}

/** Parses a value that some events store as JSON text. */
function parseStored(value: unknown): unknown {
  if (typeof value !== "string" || !/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function fieldsOf(value: unknown): Fields {
  const fields = parseStored(value);
  return typeof fields === "object" && fields !== null ? (fields as Fields) : {};
}

export function storedValueText(stored: unknown): string {
  const value = parseStored(stored);
  if (Array.isArray(value)) return value.map((one) => storedValueText(one)).join(", ");
  if (typeof value === "object" && value !== null) {
    return Object.entries(value)
      .map(([name, one]) => `${labelOf(name)} ${storedValueText(one)}`)
      .join(", ");
  }
  if (typeof value === "boolean") return value ? "on" : "off";
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
