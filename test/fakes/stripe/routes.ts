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

type Run = (state: StripeState, params: Params, id: string) => object;
type Route = readonly [method: string, path: RegExp, run: Run];

/** Reads an object by the ID in the path. */
function read(
  path: string,
  table: (state: StripeState) => ReadonlyMap<string, object>,
  what: string,
): Route {
  return [
    "GET",
    new RegExp(`^/v1/${path}/([^/]+)$`),
    (state, params, id) => {
      params.allowOnly([]);
      return found(table(state), id, what);
    },
  ];
}

type Listed = { readonly id: string; readonly created: number };

/** Lists objects whose fields match the filters. */
function list<T extends Listed>(
  path: string,
  table: (state: StripeState) => ReadonlyMap<string, T>,
  filters: Readonly<Record<string, (one: T) => unknown>>,
): Route {
  return [
    "GET",
    new RegExp(`^/v1/${path}$`),
    (state, params) => {
      params.allowOnly([...PAGE_FIELDS, ...CREATED_FIELDS, ...Object.keys(filters)]);
      const rows = [...table(state).values()].filter(
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
  ["POST", /^\/v1\/customers\/([^/]+)$/, (state, params, id) => updateCustomer(state, id, params)],
  ["GET", /^\/v1\/customers\/([^/]+)$/, (state, _, id) => readCustomer(state, id)],
  [
    "GET",
    /^\/v1\/customers\/([^/]+)\/payment_methods$/,
    (state, params, id) => {
      params.allowOnly([...PAGE_FIELDS, "type"]);
      const kept = [...state.methods.values()].filter((one) => one.customer === id);
      return pageOf(kept, params, `/v1/customers/${id}/payment_methods`);
    },
  ],
  ["POST", /^\/v1\/checkout\/sessions$/, createSession],
  [
    "POST",
    /^\/v1\/checkout\/sessions\/([^/]+)\/expire$/,
    (state, params, id) => {
      noField(params);
      return expireSession(state, id);
    },
  ],
  read("checkout/sessions", (state) => state.sessions, "checkout.session"),
  list("checkout/sessions", (state) => state.sessions, {
    customer: (one) => one.customer,
    payment_intent: (one) => one.payment_intent,
    status: (one) => one.status,
  }),
  ["POST", /^\/v1\/invoices$/, createInvoice],
  ["POST", /^\/v1\/invoiceitems$/, createItem],
  [
    "POST",
    /^\/v1\/invoices\/([^/]+)\/finalize$/,
    (state, params, id) => finalizeInvoice(state, id, params),
  ],
  ["POST", /^\/v1\/invoices\/([^/]+)\/pay$/, (state, params, id) => payInvoice(state, id, params)],
  [
    "POST",
    /^\/v1\/invoices\/([^/]+)\/void$/,
    (state, params, id) => {
      noField(params);
      return voidInvoice(state, id);
    },
  ],
  ["DELETE", /^\/v1\/invoices\/([^/]+)$/, (state, _, id) => deleteInvoice(state, id)],
  read("invoices", (state) => state.invoices, "invoice"),
  list("invoices", (state) => state.invoices, {
    customer: (one) => one.customer,
    status: (one) => one.status,
  }),
  list("invoice_payments", (state) => state.invoicePayments, {
    invoice: (one) => one.invoice,
    status: (one) => one.status,
    "payment[type]": (one) => one.payment.type,
    "payment[payment_intent]": (one) => one.payment.payment_intent,
  }),
  read("payment_intents", (state) => state.intents, "payment_intent"),
  list("payment_intents", (state) => state.intents, { customer: (one) => one.customer }),
  read("charges", (state) => state.charges, "charge"),
  list("charges", (state) => state.charges, {
    customer: (one) => one.customer,
    payment_intent: (one) => one.payment_intent,
  }),
  read("payment_methods", (state) => state.methods, "payment_method"),
  ["POST", /^\/v1\/payment_methods\/([^/]+)\/detach$/, (state, _, id) => detach(state, id)],
  ["POST", /^\/v1\/refunds$/, createRefund],
  read("refunds", (state) => state.refunds, "refund"),
  list("refunds", (state) => state.refunds, {
    charge: (one) => one.charge,
    payment_intent: (one) => one.payment_intent,
  }),
  read("disputes", (state) => state.disputes, "dispute"),
  list("disputes", (state) => state.disputes, {
    charge: (one) => one.charge,
    payment_intent: (one) => one.payment_intent,
  }),
  read("radar/early_fraud_warnings", (state) => state.warnings, "early_fraud_warning"),
  ["POST", /^\/v1\/billing_portal\/sessions$/, createPortal],
];

/** Runs a request and returns the response. Throws for an unknown URL. */
export function perform(state: StripeState, method: string, path: string, params: Params): object {
  for (const [verb, pattern, run] of ROUTES) {
    const match = verb === method ? pattern.exec(path) : null;
    if (match !== null) return run(state, params, decodeURIComponent(match[1] ?? ""));
  }
  throw badParameter(`Unrecognized request URL (${method}: ${path}).`, undefined, "url_invalid");
}
