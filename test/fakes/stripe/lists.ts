import type { Params } from "./params.ts";
import { badParameter, missing } from "./stripe-error.ts";
import type { StripeState } from "./state.ts";

type Row = { readonly id: string };
const DEPTH_MAX = 4;

export const PAGE_FIELDS = ["limit", "starting_after", "ending_before"] as const;
export const CREATED_FIELDS = [
  "created",
  "created[gt]",
  "created[gte]",
  "created[lt]",
  "created[lte]",
] as const;

/** Returns a page of a list, newest first, after `starting_after`. */
export function pageOf(rows: readonly Row[], params: Params, url: string): object {
  const limit = params.integer("limit") ?? 10;
  if (limit < 1 || limit > 100) throw badParameter("limit must be between 1 and 100", "limit");
  const newest = rows.toReversed();
  const after = params.text("starting_after");
  const from = after === null ? 0 : newest.findIndex(({ id }) => id === after) + 1;
  if (after !== null && from === 0) throw missing(after, "starting_after");
  const data = newest.slice(from, from + limit);
  return { object: "list", url, has_more: from + data.length < newest.length, data };
}

/** Reports whether a time matches the `created` filters. */
export function isCreatedIn(params: Params, created: number): boolean {
  const bound = (name: string, otherwise: number): number => params.integer(name) ?? otherwise;
  return (
    created === bound("created", created) &&
    created > bound("created[gt]", -1) &&
    created >= bound("created[gte]", 0) &&
    created < bound("created[lt]", Infinity) &&
    created <= bound("created[lte]", Infinity)
  );
}

/** Returns a copy of a response with expanded properties. */
export function expandProperties(
  state: StripeState,
  answer: object,
  paths: readonly string[],
): object {
  const copy = structuredClone(answer);
  for (const path of paths) {
    const names = path.split(".");
    if (names.length > DEPTH_MAX) {
      throw badParameter("You cannot expand more than 4 levels of a property.", "expand");
    }
    expand(state, copy as Fields, names, path);
  }
  return copy;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

function expand(state: StripeState, at: Fields, names: readonly string[], path: string): void {
  const [name, ...rest] = names;
  if (name === undefined) return;
  if (name === "payments" && at["object"] === "invoice" && at["payments"] === undefined) {
    at["payments"] = paymentsOf(state, String(at["id"]));
  }
  const value = at[name];
  if (value === null) return;
  const next = typeof value === "string" ? thingOf(state, value) : value;
  if (!isFields(next)) {
    throw badParameter(`This property cannot be expanded (${path}).`, "expand");
  }
  at[name] = next;
  const below = Array.isArray(next) ? next : [next];
  for (const one of below) if (isFields(one)) expand(state, one, rest, path);
}

function paymentsOf(state: StripeState, invoice: string): object {
  const data = [...state.invoicePayments.values()].filter((one) => one.invoice === invoice);
  return structuredClone({ object: "list", url: "/v1/invoice_payments", has_more: false, data });
}

/** Returns the object with this ID, or undefined. */
function thingOf(state: StripeState, id: string): unknown {
  const tables = [
    state.customers,
    state.methods,
    state.intents,
    state.charges,
    state.invoices,
    state.sessions,
  ];
  return structuredClone(tables.map((table) => table.get(id)).find((one) => one !== undefined));
}
