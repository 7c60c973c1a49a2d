import type * as Kept from "./objects.ts";
import { missing } from "./refusal.ts";

export const API_VERSION = "2026-10-28.endive";

/** The fake Stripe's state: objects by id, banks' views of cards, and events. */
export type World = {
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
  /** The returned part of a dispute, in cents of the charge. */
  readonly reinstated: Map<string, number>;
  readonly warnings: Map<string, Kept.Warning>;
  readonly cards: Map<string, Kept.CardBehavior>;
  /** The behavior of the next charges, before `cards`. */
  readonly nextCharges: Kept.CardBehavior[];
  readonly seconds: () => number;
  /** A new id; none is ever given twice, in another run neither. */
  readonly id: (prefix: string) => string;
  readonly emit: (type: string, object: object, previous?: Record<string, unknown>) => void;
  readonly pages: string;
  readonly taxPercent: number;
};

/** The maps of a world, which are all of its state. */
export type Tables = Pick<
  World,
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

/** A customer that is there and was not deleted. */
export function liveCustomer(world: World, id: string): Kept.Customer {
  const customer = world.customers.get(id);
  if (customer === undefined || customer.deleted === true) throw missing(id, "customer");
  return customer;
}

/** Returns an object, or fails with `status`. */
export function found<T>(table: ReadonlyMap<string, T>, id: string, what: string): T {
  const one = table.get(id);
  if (one === undefined) throw missing(id, what, 404);
  return one;
}

/** The tax of an amount of cents, added to it or standing in it. */
export function taxOf(world: World, cents: number, isInclusive: boolean): number {
  if (isInclusive) return cents - Math.round((cents * 100) / (100 + world.taxPercent));
  return Math.round((cents * world.taxPercent) / 100);
}
