import {
  captureHoldSchema,
  extendHoldSchema,
  newChargeSchema,
  newHoldSchema,
} from "../../src/money/wallet/routes/holds.route.ts";
import { idempotencyKey, MERCHANT } from "./headers.ts";
import { described } from "./operation.ts";
import * as spent from "./usage-records.ts";

/** Errors of a new hold. */
const HELD = [
  "paused",
  "hold_not_allowed",
  "insufficient_balance",
  "payment_reversed",
  "key_budget_exceeded",
  "end_user_quota_exceeded",
  "too_many_end_users",
  "too_many_sessions",
  "idempotency_mismatch",
  "idempotency_in_progress",
  "idempotency_replay",
];

/** Operations of holds and charges that clients place. */
export const HOLD_OPERATIONS = {
  "POST /v1/holds": described("Hold an amount for something other than a model call", {
    201: spent.placedHold,
    description:
      "The key needs `may_hold`. With `pays: balance`, `merchant` captures the hold with its own secret. With `pays: quota`, the key captures the hold. The amount then counts only in budgets and quotas, and the balance stays the same. With `at_least`, the hold may be smaller than `amount_dollars`. A retry with the same `Idempotency-Key` returns the first hold.",
    body: newHoldSchema,
    headers: [idempotencyKey(false)],
    errors: HELD,
  }),
  "GET /v1/holds/{id}": described("Read a hold", {
    200: spent.placedHold,
    isForMerchants: true,
  }),
  "POST /v1/holds/{id}/capture": described("Charge a hold, or a part of it, once", {
    200: spent.placedHold,
    description:
      "Without `amount_dollars`, the whole hold is charged. The rest is released. A retry with the same amount returns the same hold. Merchants send their secret as the bearer token.",
    body: captureHoldSchema,
    isBodyOptional: true,
    isForMerchants: true,
    errors: ["hold_not_allowed", "hold_ended"],
  }),
  "POST /v1/holds/{id}/release": described("End a hold without a charge", {
    200: spent.placedHold,
    description: "Merchants send their secret as the bearer token.",
    isForMerchants: true,
    errors: ["hold_not_allowed", "hold_ended"],
  }),
  "POST /v1/holds/{id}/extend": described("Keep a hold open for longer, at most 7 days in all", {
    200: spent.placedHold,
    body: extendHoldSchema,
    errors: ["hold_ended"],
  }),
  "POST /v1/charges": described("Place and capture a hold immediately", {
    201: spent.placedHold,
    description:
      "Like `POST /v1/holds` and its capture in one transaction. With `pays: balance`, the merchant's secret is in `x-merchant-secret`.",
    body: newChargeSchema,
    headers: [idempotencyKey(false), MERCHANT],
    errors: HELD,
  }),
};
