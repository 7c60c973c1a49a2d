import { createSession, expireSession } from "./checkout.ts";
import { createCustomer, createPortal, detach, readCustomer, updateCustomer } from "./customers.ts";
import {
  createInvoice,
  createItem,
  deleteInvoice,
  finalizeInvoice,
  payInvoice,
  voidInvoice,
} from "./invoices.ts";
import { CREATED_FIELDS, isCreatedIn, PAGE_FIELDS, pageOf } from "./lists.ts";
import type { Params } from "./params.ts";
import { badParameter } from "./stripe-error.ts";
import { createRefund } from "./returns.ts";
import { found } from "./state.ts";
import type { StripeState } from "./state.ts";

type Run = (world: StripeState, params: Params, id: string) => object;
type Route = readonly [method: string, path: RegExp, run: Run];

/** Reads an object by the ID in the path. */
function read(
  path: string,
  table: (world: StripeState) => ReadonlyMap<string, object>,
  what: string,
): Route {
  return [
    "GET",
    new RegExp(`^/v1/${path}/([^/]+)$`),
    (world, params, id) => {
      params.allowOnly([]);
      return found(table(world), id, what);
    },
  ];
}

type Listed = { readonly id: string; readonly created: number };

/** Lists objects whose fields match the filters. */
function list<T extends Listed>(
  path: string,
  table: (world: StripeState) => ReadonlyMap<string, T>,
  filters: Readonly<Record<string, (one: T) => unknown>>,
): Route {
  return [
    "GET",
    new RegExp(`^/v1/${path}$`),
    (world, params) => {
      params.allowOnly([...PAGE_FIELDS, ...CREATED_FIELDS, ...Object.keys(filters)]);
      const rows = [...table(world).values()].filter(
        (one) =>
          isCreatedIn(params, one.created) &&
          Object.entries(filters).every(([name, of]) =>
            [null, of(one)].includes(params.text(name)),
          ),
      );
      return pageOf(rows, params, `/v1/${path}`);
    },
  ];
}

const noField = (params: Params): void => params.allowOnly([]);

/** The part of Stripe's API that selling credits uses. */
const ROUTES: readonly Route[] = [
  ["POST", /^\/v1\/customers$/, createCustomer],
  ["POST", /^\/v1\/customers\/([^/]+)$/, (world, params, id) => updateCustomer(world, id, params)],
  ["GET", /^\/v1\/customers\/([^/]+)$/, (world, _, id) => readCustomer(world, id)],
  [
    "GET",
    /^\/v1\/customers\/([^/]+)\/payment_methods$/,
    (world, params, id) => {
      params.allowOnly([...PAGE_FIELDS, "type"]);
      const kept = [...world.methods.values()].filter((one) => one.customer === id);
      return pageOf(kept, params, `/v1/customers/${id}/payment_methods`);
    },
  ],
  ["POST", /^\/v1\/checkout\/sessions$/, createSession],
  [
    "POST",
    /^\/v1\/checkout\/sessions\/([^/]+)\/expire$/,
    (world, params, id) => {
      noField(params);
      return expireSession(world, id);
    },
  ],
  read("checkout/sessions", (world) => world.sessions, "checkout.session"),
  list("checkout/sessions", (world) => world.sessions, {
    customer: (one) => one.customer,
    payment_intent: (one) => one.payment_intent,
    status: (one) => one.status,
  }),
  ["POST", /^\/v1\/invoices$/, createInvoice],
  ["POST", /^\/v1\/invoiceitems$/, createItem],
  [
    "POST",
    /^\/v1\/invoices\/([^/]+)\/finalize$/,
    (world, params, id) => finalizeInvoice(world, id, params),
  ],
  ["POST", /^\/v1\/invoices\/([^/]+)\/pay$/, (world, params, id) => payInvoice(world, id, params)],
  [
    "POST",
    /^\/v1\/invoices\/([^/]+)\/void$/,
    (world, params, id) => {
      noField(params);
      return voidInvoice(world, id);
    },
  ],
  ["DELETE", /^\/v1\/invoices\/([^/]+)$/, (world, _, id) => deleteInvoice(world, id)],
  read("invoices", (world) => world.invoices, "invoice"),
  list("invoices", (world) => world.invoices, {
    customer: (one) => one.customer,
    status: (one) => one.status,
  }),
  list("invoice_payments", (world) => world.invoicePayments, {
    invoice: (one) => one.invoice,
    status: (one) => one.status,
    "payment[type]": (one) => one.payment.type,
    "payment[payment_intent]": (one) => one.payment.payment_intent,
  }),
  read("payment_intents", (world) => world.intents, "payment_intent"),
  list("payment_intents", (world) => world.intents, { customer: (one) => one.customer }),
  read("charges", (world) => world.charges, "charge"),
  list("charges", (world) => world.charges, {
    customer: (one) => one.customer,
    payment_intent: (one) => one.payment_intent,
  }),
  read("payment_methods", (world) => world.methods, "payment_method"),
  ["POST", /^\/v1\/payment_methods\/([^/]+)\/detach$/, (world, _, id) => detach(world, id)],
  ["POST", /^\/v1\/refunds$/, createRefund],
  read("refunds", (world) => world.refunds, "refund"),
  list("refunds", (world) => world.refunds, {
    charge: (one) => one.charge,
    payment_intent: (one) => one.payment_intent,
  }),
  read("disputes", (world) => world.disputes, "dispute"),
  list("disputes", (world) => world.disputes, {
    charge: (one) => one.charge,
    payment_intent: (one) => one.payment_intent,
  }),
  read("radar/early_fraud_warnings", (world) => world.warnings, "early_fraud_warning"),
  ["POST", /^\/v1\/billing_portal\/sessions$/, createPortal],
];

/** Runs a request and returns the response. Throws for an unknown URL. */
export function perform(world: StripeState, method: string, path: string, params: Params): object {
  for (const [verb, pattern, run] of ROUTES) {
    const match = verb === method ? pattern.exec(path) : null;
    if (match !== null) return run(world, params, decodeURIComponent(match[1] ?? ""));
  }
  throw badParameter(`Unrecognized request URL (${method}: ${path}).`, undefined, "url_invalid");
}
