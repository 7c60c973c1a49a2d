// Data of the fake Stripe, limited to fields that the gateway reads.

export type Metadata = Record<string, string>;
type Address = { country: string; postal_code: string; line1: string; city: string };

export type Customer = {
  id: string;
  object: "customer";
  created: number;
  livemode: false;
  name: string | null;
  email: string | null;
  address: Address | null;
  invoice_settings: { default_payment_method: string | null };
  metadata: Metadata;
  deleted?: true;
};

export type PaymentMethod = {
  id: string;
  object: "payment_method";
  created: number;
  livemode: false;
  type: "card";
  customer: string | null;
  card: { brand: string; last4: string; exp_month: number; exp_year: number; fingerprint: string };
};

/** A card error in a response or in `last_payment_error`. */
export type CardError = {
  type: "card_error" | "invalid_request_error";
  code: string;
  decline_code?: string;
  advice_code?: string;
  message: string;
  payment_method?: { id: string };
};

export type Intent = {
  id: string;
  object: "payment_intent";
  created: number;
  livemode: false;
  amount: number;
  amount_received: number;
  currency: string;
  customer: string | null;
  metadata: Metadata;
  payment_method: string | null;
  latest_charge: string | null;
  last_payment_error: CardError | null;
  next_action: { type: "use_stripe_sdk" } | null;
  setup_future_usage: "off_session" | "on_session" | null;
  status: "requires_payment_method" | "requires_action" | "processing" | "canceled" | "succeeded";
};

export type Charge = {
  id: string;
  object: "charge";
  created: number;
  livemode: false;
  amount: number;
  amount_captured: number;
  amount_refunded: number;
  currency: string;
  customer: string | null;
  disputed: boolean;
  failure_code: string | null;
  metadata: Metadata;
  outcome: { type: "authorized" | "issuer_declined" | "blocked" };
  paid: boolean;
  captured: boolean;
  payment_intent: string;
  payment_method: string;
  payment_method_details: { type: "card"; card: PaymentMethod["card"] };
  receipt_url: string | null;
  refunded: boolean;
  status: "succeeded" | "failed";
};

export type Session = {
  id: string;
  object: "checkout.session";
  created: number;
  livemode: false;
  mode: "payment";
  amount_subtotal: number;
  amount_total: number;
  total_details: { amount_discount: number; amount_shipping: number; amount_tax: number };
  automatic_tax: { enabled: boolean };
  invoice_creation: { enabled: boolean };
  cancel_url: string | null;
  success_url: string;
  client_reference_id: string | null;
  currency: string;
  customer: string;
  expires_at: number;
  invoice: string | null;
  metadata: Metadata;
  payment_intent: string | null;
  payment_status: "unpaid" | "paid";
  status: "open" | "complete" | "expired";
  url: string | null;
};

/** Parameters of a session that responses don't include. */
export type SessionTerms = {
  readonly intentMetadata: Metadata;
  readonly invoiceMetadata: Metadata;
  readonly keepsCard: boolean;
  readonly takesAddress: boolean;
  readonly isInclusive: boolean;
  readonly lines: readonly { readonly name: string; readonly amount: number }[];
};

export type Invoice = {
  id: string;
  object: "invoice";
  created: number;
  livemode: false;
  amount_due: number;
  amount_paid: number;
  amount_remaining: number;
  attempt_count: number;
  attempted: boolean;
  auto_advance: boolean;
  automatic_tax: { enabled: boolean };
  collection_method: "charge_automatically";
  currency: string;
  customer: string;
  default_payment_method: string | null;
  hosted_invoice_url: string | null;
  invoice_pdf: string | null;
  metadata: Metadata;
  number: string | null;
  status: "draft" | "open" | "paid" | "void";
  subtotal: number;
  total: number;
  total_excluding_tax: number;
  total_taxes: { amount: number; tax_behavior: "exclusive" | "inclusive" }[];
};

export type InvoiceItem = {
  id: string;
  object: "invoiceitem";
  date: number;
  livemode: false;
  amount: number;
  currency: string;
  customer: string;
  description: string | null;
  invoice: string;
};

export type InvoicePayment = {
  id: string;
  object: "invoice_payment";
  created: number;
  livemode: false;
  amount_paid: number | null;
  amount_requested: number;
  currency: string;
  invoice: string;
  is_default: boolean;
  payment: { type: "payment_intent"; payment_intent: string };
  status: "open" | "paid" | "canceled";
};

export type RefundStatus = "pending" | "requires_action" | "succeeded" | "failed" | "canceled";
export type Refund = {
  id: string;
  object: "refund";
  created: number;
  amount: number;
  charge: string;
  currency: string;
  failure_reason?: string;
  metadata: Metadata;
  payment_intent: string;
  status: RefundStatus;
};

export type DisputeStatus =
  | "warning_needs_response"
  | "warning_under_review"
  | "warning_closed"
  | "prevented"
  | "needs_response"
  | "under_review"
  | "lost"
  | "won"
  | "appeal_needs_response"
  | "appeal_under_review";
export type Dispute = {
  id: string;
  object: "dispute";
  created: number;
  livemode: false;
  amount: number;
  balance_transactions: { id: string; amount: number; currency: string; type: "adjustment" }[];
  charge: string;
  currency: string;
  is_charge_refundable: boolean;
  metadata: Metadata;
  payment_intent: string;
  reason: string;
  status: DisputeStatus;
};

export type Warning = {
  id: string;
  object: "radar.early_fraud_warning";
  created: number;
  livemode: false;
  actionable: boolean;
  charge: string;
  fraud_type: string;
  payment_intent: string;
};

export type StripeEvent = {
  id: string;
  object: "event";
  api_version: string;
  created: number;
  livemode: false;
  type: string;
  data: { object: Record<string, unknown>; previous_attributes?: Record<string, unknown> };
  request: { id: string | null; idempotency_key: string | null };
};

/**
 * A bank's behavior for a card. `asks_invalid` is the second of Stripe's errors for required
 * approval.
 */
export type CardBehavior =
  | "ok"
  | "asks"
  | "asks_invalid"
  | { readonly decline_code: string; readonly advice_code?: string }
  | { readonly blocked: true };
