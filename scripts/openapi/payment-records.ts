import * as z from "zod";
import { PURCHASE_STATES } from "../../src/shared/contracts/payments.ts";
import { count, dollars, micros, owner, record, time } from "./fields.ts";
import { creditsData } from "./openrouter-records.ts";

const card = record("Card", {
  brand: z.string(),
  last4: z.string(),
  exp_month: count,
  exp_year: count,
});
export const autoTopUp = record("AutoTopUp", {
  below_dollars: dollars,
  amount_dollars: dollars,
  most_per_month_dollars: dollars,
});
const error = z.strictObject({ code: z.string(), message: z.string() });
const purchaseShape = {
  id: z.string(),
  state: z
    .enum(PURCHASE_STATES)
    .describe(
      "`credited`, `declined` and `expired` are final. With `needs_customer`, a person must act at `url`.",
    ),
  method: z.enum(["checkout", "card", "auto"]),
  amount_dollars: dollars,
  credited_micro: micros.nullable(),
  returned_micro: micros,
  url: z.string().nullable(),
  error: error.nullable(),
  save_card: z.boolean(),
  card: card.nullable(),
  created_at: time,
  updated_at: time,
  expires_at: time.nullable(),
};
export const purchase = record("Purchase", purchaseShape);
export const purchases = record("Purchases", {
  purchases: z.array(purchase),
  next_after: z.string().nullable(),
});
const operatorShape = {
  ...purchaseShape,
  actor: z.strictObject({ kind: z.string(), id: z.string().nullable() }),
  customer_id: z.string().nullable(),
  session_id: z.string().nullable(),
  invoice_id: z.string().nullable(),
  payment_id: z.string().nullable(),
  step: z.string().nullable(),
  tries: count,
  next_at: time.nullable(),
  request_id: z.string().nullable(),
};
export const operatorPurchase = record("OperatorPurchase", operatorShape);
export const allPurchases = record("AllPurchases", {
  purchases: z.array(record("ListedPurchase", { ...operatorShape, organization: owner })),
  next_after: z.string().nullable(),
});
export const operatorPurchases = record("OperatorPurchases", {
  purchases: z.array(operatorPurchase),
  next_after: z.string().nullable(),
});
export const portal = record("Portal", { url: z.string() });
export const owed = record("Owed", { owed_micro: micros });

const credit = record("CreditRow", {
  id: z.string(),
  created_at: time,
  kind: z
    .enum(["payment", "credit", "correction", "reversal", "return", "rebuild"])
    .describe(
      "Operators add `credit` and `correction`. A `reversal` pays owed credits, and a `return` restores them.",
    ),
  amount_micro: micros,
  balance_micro: micros,
  reference: z.string(),
  purchase_id: z.string().nullable(),
});
export const credits = record("CreditsPage", {
  credits: z.array(credit),
  next_after: count.nullable(),
  owed_micro: micros,
  sold: z
    .strictObject({ dollars_min: count, dollars_max: count, card: card.nullable() })
    .nullable(),
  auto_top_up: autoTopUp.nullable(),
  top_up: z.strictObject({
    purchase_id: z.string().nullable(),
    month_micro: micros,
    paused_until: time.nullable(),
    disabled_reason: z.string().nullable(),
  }),
  data: creditsData.optional(),
});
