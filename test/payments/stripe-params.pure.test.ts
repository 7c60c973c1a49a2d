import type { Stripe as Types } from "stripe";
import { Stripe } from "stripe";
import { expect, it } from "vitest";
import { API_VERSION as FAKE_VERSION } from "../fakes/stripe/state.ts";
import * as calls from "../../src/money/payments/stripe-calls.ts";
import { STRIPE_API_VERSION, encodeForm } from "../../src/money/payments/stripe.ts";
import { SALE } from "./sale.ts";

it("the payments code and the fake Stripe use the API version of Stripe's types", () => {
  expect([STRIPE_API_VERSION, FAKE_VERSION]).toEqual([Stripe.API_VERSION, Stripe.API_VERSION]);
});

it("the payments code sends only fields that exist in the types of Stripe's package", () => {
  calls.buildCustomerParams({
    orgId: "o",
    orgName: "n",
    region: "eu",
  }) satisfies Types.CustomerCreateParams;
  calls.buildCheckoutSessionParams(SALE) satisfies Writable<Types.Checkout.SessionCreateParams>;
  calls.buildInvoiceParams(SALE, "pm_1") satisfies Writable<Types.InvoiceCreateParams>;
  calls.buildInvoiceItemParams(SALE, "in_1") satisfies Types.InvoiceItemCreateParams;
  calls.FINALIZE_INVOICE_PARAMS satisfies Types.InvoiceFinalizeInvoiceParams;
  calls.buildPayInvoiceParams("pm_1") satisfies Types.InvoicePayParams;
  calls.buildRefundParams("pi_1", {
    amountCents: 100,
    name: "name",
  }) satisfies Types.RefundCreateParams;
  calls.buildBillingPortalParams(
    "cus_1",
    "https://eu.test/",
  ) satisfies Types.BillingPortal.SessionCreateParams;
  calls.buildDefaultCardParams("pm_1") satisfies Types.CustomerUpdateParams;
  expect(encodeForm(calls.buildCheckoutSessionParams(SALE))).not.toContain(
    "payment_method_types%5D",
  );
});

it("the payments code builds a repeated call from the stored purchase, byte for byte", () => {
  const once = encodeForm(calls.buildCheckoutSessionParams(SALE));
  expect(encodeForm(calls.buildCheckoutSessionParams({ ...SALE }))).toBe(once);
  expect(once).toContain(`expires_at=${SALE.createdAt / 1000 + 3600}`);
});

/** Removes read-only marks, because lists are only written to a form. */
type Writable<T> = T extends readonly (infer One)[]
  ? readonly Writable<One>[]
  : T extends object
    ? { [Name in keyof T]: Writable<T[Name]> }
    : T;

type Names<T> = T extends object ? keyof T : never;
type At<T, Name> = T extends object ? (Name extends keyof T ? NonNullable<T[Name]> : never) : never;
/** The names of sent fields at any depth that Stripe's form lacks. */
type Dead<Sent, Form> = Sent extends string | number | boolean | undefined
  ? never
  : Sent extends readonly (infer One)[]
    ? Dead<One, Form extends readonly (infer Theirs)[] ? Theirs : never>
    : {
        [Name in keyof Sent]-?: Name extends Names<Form> ? Dead<Sent[Name], At<Form, Name>> : Name;
      }[keyof Sent];
type Lives<Sent, Form> = [Dead<Sent, Form>] extends [never] ? true : Dead<Sent, Form>;
void ([true, true, true, true, true, true, true, true, true] satisfies [
  Lives<ReturnType<typeof calls.buildCustomerParams>, Types.CustomerCreateParams>,
  Lives<ReturnType<typeof calls.buildCheckoutSessionParams>, Types.Checkout.SessionCreateParams>,
  Lives<ReturnType<typeof calls.buildInvoiceParams>, Types.InvoiceCreateParams>,
  Lives<ReturnType<typeof calls.buildInvoiceItemParams>, Types.InvoiceItemCreateParams>,
  Lives<typeof calls.FINALIZE_INVOICE_PARAMS, Types.InvoiceFinalizeInvoiceParams>,
  Lives<ReturnType<typeof calls.buildPayInvoiceParams>, Types.InvoicePayParams>,
  Lives<ReturnType<typeof calls.buildRefundParams>, Types.RefundCreateParams>,
  Lives<ReturnType<typeof calls.buildBillingPortalParams>, Types.BillingPortal.SessionCreateParams>,
  Lives<ReturnType<typeof calls.buildDefaultCardParams>, Types.CustomerUpdateParams>,
]);
