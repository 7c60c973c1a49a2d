import type * as Kept from "./objects.ts";
import { missing } from "./stripe-error.ts";

export const API_VERSION = "2026-10-28.endive";

/** The fake Stripe's state: objects by ID, card behaviors and events. */
export type StripeState = {
  readonly customers: Map<string, Kept.Customer>;
  readonly methods: Map<string, Kept.PaymentMethod>;
  readonly intents: Map<string, Kept.Intent>;
  readonly charges: Map<string, Kept.Charge>;
  readonly sessions: Map<string, Kept.Session>;
  readonly terms: Map<string, Kept.SessionTerms>;
  readonly invoices: Map<string, Kept.Invoice>;
  readonly items: Map<string, Kept.InvoiceItem>;
  readonly invoicePayments: Map<string, Kept.InvoicePayment>;
  readonly refunds: Map<string, Kept.Refund>;
  readonly disputes: Map<string, Kept.Dispute>;
  /** The returned part of a dispute, in cents. */
  readonly reinstated: Map<string, number>;
  readonly warnings: Map<string, Kept.Warning>;
  readonly cards: Map<string, Kept.CardBehavior>;
  /** Behaviors of the next charges, which override `cards`. */
  readonly nextCharges: Kept.CardBehavior[];
  readonly seconds: () => number;
  /** Returns an ID that is unique, even across runs. */
  readonly id: (prefix: string) => string;
  readonly emit: (type: string, object: object, previous?: Record<string, unknown>) => void;
  readonly pages: string;
  readonly taxPercent: number;
};

/** The maps with the whole state. */
export type Tables = Pick<
  StripeState,
  | "customers"
  | "methods"
  | "intents"
  | "charges"
  | "sessions"
  | "terms"
  | "invoices"
  | "items"
  | "invoicePayments"
  | "refunds"
  | "disputes"
  | "reinstated"
  | "warnings"
  | "cards"
>;

export function emptyTables(): Tables {
  return {
    customers: new Map(),
    methods: new Map(),
    intents: new Map(),
    charges: new Map(),
    sessions: new Map(),
    terms: new Map(),
    invoices: new Map(),
    items: new Map(),
    invoicePayments: new Map(),
    refunds: new Map(),
    disputes: new Map(),
    reinstated: new Map(),
    warnings: new Map(),
    cards: new Map(),
  };
}

/** Returns an existing customer. Throws for a deleted one. */
export function liveCustomer(state: StripeState, id: string): Kept.Customer {
  const customer = state.customers.get(id);
  if (customer === undefined || customer.deleted === true) throw missing(id, "customer");
  return customer;
}

/** Returns an object, or throws a 404. */
export function found<T>(table: ReadonlyMap<string, T>, id: string, what: string): T {
  const one = table.get(id);
  if (one === undefined) throw missing(id, what, 404);
  return one;
}

/** Returns the tax of an amount in cents, added to it or included in it. */
export function taxOf(state: StripeState, cents: number, isInclusive: boolean): number {
  if (isInclusive) return cents - Math.round((cents * 100) / (100 + state.taxPercent));
  return Math.round((cents * state.taxPercent) / 100);
}
