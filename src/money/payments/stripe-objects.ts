import * as z from "zod/mini";

const nonNegativeInt = z.int().check(z.minimum(0));
const id = z.string().check(z.regex(/^[a-z]+_[A-Za-z0-9_]{1,250}$/));
const idOrObject = z.pipe(
  z.union([id, z.object({ id })]),
  z.transform((value) => (typeof value === "string" ? value : value.id)),
);
const usd = z.literal("usd");
const metadata = z._default(z.nullable(z.record(z.string(), z.string())), null);
const listOf = <T extends z.core.$ZodType>(item: T) =>
  z.object({ data: z.array(item), has_more: z._default(z.boolean(), false) });

const card = z.object({
  brand: z.nullish(z.string()),
  last4: z.nullish(z.string()),
  exp_month: z.nullish(z.int()),
  exp_year: z.nullish(z.int()),
  fingerprint: z.nullish(z.string()),
});
const charge = z.object({
  id,
  payment_method_details: z.nullish(z.object({ card: z.nullish(card) })),
  outcome: z.nullish(z.object({ type: z.nullish(z.string()) })),
});
/** A charge, or null if Stripe returned only the charge's ID. */
const chargeOrId = z.pipe(
  z.union([charge, id]),
  z.transform((value) => (typeof value === "string" ? null : value)),
);
const paymentError = z.object({
  code: z.nullish(z.string()),
  decline_code: z.nullish(z.string()),
  advice_code: z.nullish(z.string()),
});

export const paymentIntentSchema = z.object({
  id,
  status: z.string(),
  livemode: z.boolean(),
  currency: usd,
  amount: nonNegativeInt,
  amount_received: nonNegativeInt,
  customer: z.nullish(idOrObject),
  payment_method: z.nullish(idOrObject),
  latest_charge: z.nullish(chargeOrId),
  last_payment_error: z.nullish(paymentError),
  metadata,
});
export type StripePaymentIntent = z.infer<typeof paymentIntentSchema>;

export const stripeIdSchema = z.object({ id });

export const checkoutSessionSchema = z.object({
  id,
  livemode: z.boolean(),
  status: z.nullable(z.string()),
  payment_status: z.string(),
  currency: z.nullish(usd),
  amount_total: z.nullish(nonNegativeInt),
  total_details: z.nullish(z.object({ amount_tax: nonNegativeInt })),
  customer: z.nullish(idOrObject),
  payment_intent: z.nullish(z.union([paymentIntentSchema, id])),
  url: z.nullish(z.string().check(z.regex(/^https?:\/\/\S{1,4000}$/))),
  expires_at: nonNegativeInt,
  metadata,
});
export type CheckoutSession = z.infer<typeof checkoutSessionSchema>;

export const invoiceSchema = z.object({
  id,
  livemode: z.boolean(),
  status: z.nullable(z.string()),
  currency: usd,
  customer: z.nullish(idOrObject),
  subtotal: z.int(),
  total: z.int(),
  total_taxes: z.nullish(z.array(z.object({ amount: z.int() }))),
  hosted_invoice_url: z.nullish(z.string().check(z.regex(/^https?:\/\/\S{1,4000}$/))),
  payments: z.nullish(
    listOf(
      z.object({
        payment: z.object({
          type: z.string(),
          payment_intent: z.nullish(z.union([paymentIntentSchema, id])),
        }),
      }),
    ),
  ),
  metadata,
});
export type Invoice = z.infer<typeof invoiceSchema>;

export const objectListSchema = listOf(z.object({ id, metadata }));

export const refundSchema = z.object({ payment_intent: z.nullish(idOrObject) });
export const refundsSchema = listOf(
  z.object({ id, amount: nonNegativeInt, currency: usd, status: z.nullable(z.string()), metadata }),
);
export const disputesSchema = listOf(
  z.object({
    id,
    amount: nonNegativeInt,
    currency: usd,
    status: z.string(),
    balance_transactions: z._default(z.array(z.object({ amount: z.int() })), []),
  }),
);
export const invoicePaymentsSchema = listOf(z.object({ invoice: z.nullish(idOrObject) }));
export const billingPortalSchema = z.object({
  url: z.string().check(z.regex(/^https?:\/\/\S{1,4000}$/)),
});

export const stripeEventSchema = z.object({
  id,
  type: z.string().check(z.maxLength(100)),
  livemode: z.boolean(),
  created: nonNegativeInt,
  data: z.object({
    object: z.object({
      id: z.nullish(z.string()),
      object: z.nullish(z.string()),
      customer: z.nullish(idOrObject),
      payment_intent: z.nullish(idOrObject),
      charge: z.nullish(idOrObject),
      metadata,
    }),
    previous_attributes: z.nullish(z.object({ customer: z.nullish(idOrObject) })),
  }),
});
export type StripeEvent = z.infer<typeof stripeEventSchema>;
/**
 * Unparsed events. Each is parsed separately later, so that an invalid event can't block others.
 */
export const stripeEventsSchema = listOf(
  z.looseObject({ id, created: z.optional(nonNegativeInt) }),
);
export const chargeSchema = z.object({
  id,
  payment_intent: z.nullish(idOrObject),
  customer: z.nullish(idOrObject),
});
