import type { Customer, PaymentMethod } from "./objects.ts";
import type { Params } from "./params.ts";
import { missing } from "./stripe-error.ts";
import { found, liveCustomer } from "./state.ts";
import type { StripeState } from "./state.ts";

const CUSTOMER_FIELDS = [
  "name",
  "email",
  "description",
  "metadata[*]",
  "invoice_settings[default_payment_method]",
] as const;

/** `POST /v1/customers`. */
export function createCustomer(state: StripeState, params: Params): Customer {
  params.allowOnly(CUSTOMER_FIELDS);
  const customer: Customer = {
    id: state.id("cus"),
    object: "customer",
    created: state.seconds(),
    livemode: false,
    name: params.text("name"),
    email: params.text("email"),
    address: null,
    invoice_settings: { default_payment_method: null },
    metadata: params.metadata("metadata"),
  };
  state.customers.set(customer.id, customer);
  state.emit("customer.created", customer);
  return customer;
}

/** `POST /v1/customers/{id}`. */
export function updateCustomer(state: StripeState, id: string, params: Params): Customer {
  params.allowOnly(CUSTOMER_FIELDS);
  const customer = liveCustomer(state, id);
  const method = params.text("invoice_settings[default_payment_method]");
  if (method !== null) {
    if (state.methods.get(method)?.customer !== id) throw missing(method, "payment_method");
    customer.invoice_settings.default_payment_method = method;
  }
  customer.name = params.text("name") ?? customer.name;
  customer.email = params.text("email") ?? customer.email;
  Object.assign(customer.metadata, params.metadata("metadata"));
  return customer;
}

/** Reads a customer. A deleted one only has that flag. */
export function readCustomer(state: StripeState, id: string): object {
  const customer = found(state.customers, id, "customer");
  return customer.deleted === true ? { id, object: "customer", deleted: true } : customer;
}

/** Deletes a customer as in the Dashboard. Refunds and disputes of its payments remain possible. */
export function deleteCustomer(state: StripeState, id: string): void {
  liveCustomer(state, id).deleted = true;
  for (const method of state.methods.values()) {
    if (method.customer === id) detach(state, method.id);
  }
  state.emit("customer.deleted", { id, object: "customer", deleted: true });
}

/** Removes a card from its customer. It can't pay any more. */
export function detach(state: StripeState, id: string): PaymentMethod {
  const method = found(state.methods, id, "payment_method");
  const customer = method.customer;
  method.customer = null;
  for (const one of state.customers.values()) {
    if (one.invoice_settings.default_payment_method === id) {
      one.invoice_settings.default_payment_method = null;
    }
  }
  state.emit("payment_method.detached", method, { customer });
  return method;
}

/** `POST /v1/billing_portal/sessions`. */
export function createPortal(state: StripeState, params: Params): object {
  params.allowOnly(["customer", "return_url", "configuration", "locale"]);
  const customer = liveCustomer(state, params.required("customer"));
  const back = params.url("return_url");
  const id = state.id("bps");
  const url = `${state.pages}/p/${customer.id}?back=${encodeURIComponent(back)}`;
  const times = { created: state.seconds(), livemode: false };
  return {
    id,
    object: "billing_portal.session",
    ...times,
    customer: customer.id,
    return_url: back,
    url,
  };
}
