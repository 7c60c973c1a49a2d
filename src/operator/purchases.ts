import {
  PURCHASE_ID_PREFIX,
  PURCHASE_STATES,
  REFUND_REASONS,
} from "../shared/contracts/payments.ts";
import type { StripeHint, PurchaseRecord } from "../shared/contracts/payments.ts";
import * as z from "zod/mini";
import { accepted } from "../shared/http/endpoint.ts";
import {
  timeParameterSchema,
  singleValueSchema,
  parseFields,
  parseQuery,
} from "../shared/http/parse-body.ts";
import { invalid, success } from "../shared/failure.ts";
import { sha256HexSync } from "../shared/hash.ts";
import { readIdempotencyKey } from "../shared/idempotency.ts";
import { micros } from "../shared/money.ts";
import {
  creditPageView,
  operatorPurchaseView,
  purchasePageView,
} from "../money/payments/payment-views.ts";
import { listPublishedPurchases, REFUNDED_FILTER } from "../money/payments/payments.store.ts";
import { isSlug } from "../accounts/organizations/organization.ts";
import { findOrganizationIdBySlug } from "../accounts/organizations/organizations.store.ts";
import { creditsQuerySchema, purchasesQuerySchema } from "../money/payments/purchases.route.ts";
import { bodyOf, noFields, queryOf, withOrganization } from "./organization-call.ts";
import { idRangeOfPage } from "./operator-events.ts";
import type { OperatorCall } from "./operator-context.ts";

export const allPurchasesQuerySchema = z.extend(purchasesQuerySchema, {
  org: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(100))),
  state: z.optional(z.enum([...PURCHASE_STATES, REFUNDED_FILTER])),
  from: z.optional(timeParameterSchema),
  to: z.optional(timeParameterSchema),
});

/** Handles `GET /purchases`, from D1, newest first. */
export async function getAllPurchases(call: OperatorCall) {
  const query = parseQuery(allPurchasesQuerySchema, call.url);
  if (!query.ok) return query;
  const { org, state = null, from = 0, to, limit, after } = query.value;
  const orgId =
    org !== undefined && isSlug(org) ? await findOrganizationIdBySlug(call.db, org) : org;
  if (orgId === null) return success({ purchases: [], next_after: null });
  const page = idRangeOfPage(PURCHASE_ID_PREFIX, { after, from, to });
  const rows = await listPublishedPurchases(call.db, {
    ...page,
    orgId: orgId ?? null,
    state,
    limit,
  });
  const purchases = rows.slice(0, limit);
  return success({
    purchases: purchases.map(({ purchase, organization }) => {
      return { ...operatorPurchaseView(purchase), organization };
    }),
    next_after: rows.length > limit ? (purchases.at(-1)?.purchase.id ?? null) : null,
  });
}

/** Handles `GET /orgs/{id}/purchases`. */
export const getPurchases = withOrganization(
  queryOf(purchasesQuerySchema),
  async (call, { id }, { limit, after = null }) => {
    const listed = await call.payments(id).purchases(limit, after);
    return listed.ok ? success(purchasePageView(listed.value, operatorPurchaseView)) : listed;
  },
);

/** Handles `GET /orgs/{id}/purchases/{purchase_id}`. */
export const getPurchase = withOrganization(noFields, async (call, { id }) => {
  const purchase = await call.payments(id).purchase(call.params["purchase_id"] ?? "");
  return purchase.ok ? success(operatorPurchaseView(purchase.value)) : purchase;
});

/**
 * Handles `POST /orgs/{id}/purchases/{purchase_id}/check`. Lets the payments object read the
 * purchase from Stripe again, after the response.
 */
export const postPurchaseCheck = withOrganization(noFields, async (call, { id: orgId }) => {
  const payments = call.payments(orgId);
  const purchase = await payments.purchase(call.params["purchase_id"] ?? "");
  if (!purchase.ok) return purchase;
  const stripeObject = stripeObjectOf(purchase.value);
  const eventId = `evt_own_${crypto.randomUUID()}`;
  const hint =
    stripeObject === null ? purchase : await payments.hint({ eventId, orgId, ...stripeObject });
  return hint.ok ? accepted(operatorPurchaseView(purchase.value)) : hint;
});

/**
 * Returns the Stripe object that determines a purchase's state: its payment, or else its checkout
 * session or invoice.
 */
function stripeObjectOf(purchase: PurchaseRecord): Pick<StripeHint, "kind" | "object"> | null {
  const { paymentId, sessionId, invoiceId } = purchase;
  if (paymentId !== null) return { kind: "back", object: paymentId };
  if (sessionId !== null) return { kind: "session", object: sessionId };
  return invoiceId === null ? null : { kind: "invoice", object: invoiceId };
}

export const refundSchema = z.object({
  amount_cents: z.nullish(z.int("must be a whole number of cents").check(z.minimum(1))),
  reason: z.nullish(z.enum(REFUND_REASONS)),
});

/**
 * Handles `POST /orgs/{id}/purchases/{purchase_id}/refund`. The wallet is updated later. Requires
 * an Idempotency-Key, so that a retry doesn't refund twice.
 */
export const postRefund = withOrganization(readRefund, async (call, { id }, { fields, key }) => {
  const refunded = await call.payments(id).refund({
    purchase: call.params["purchase_id"] ?? "",
    amountCents: fields.amount_cents ?? null,
    reason: fields.reason ?? null,
    name: sha256HexSync(`${call.actor.id} ${key}`),
    actor: call.actor,
  });
  return refunded.ok ? accepted(operatorPurchaseView(refunded.value)) : refunded;
});

function readRefund({ body, idempotencyKey }: OperatorCall) {
  const fields = parseFields(refundSchema, [], body ?? {});
  if (!fields.ok) return fields;
  const key = readIdempotencyKey(idempotencyKey ?? undefined);
  if (!key.ok) return key;
  return key.value === null
    ? invalid("A refund requires the header 'Idempotency-Key'.", "Idempotency-Key")
    : success({ fields: fields.value, key: key.value });
}

export const forgiveDebtSchema = z.object({
  forgive_micro: z.int("must be a whole number of micros").check(z.minimum(1)),
  reference: z.string().check(z.minLength(1), z.maxLength(200)),
});

/** Handles `POST /orgs/{id}/owed`. Forgives part of the debt, once per `reference`. */
export const postDebtForgiveness = withOrganization(
  bodyOf(forgiveDebtSchema),
  async (call, { id }, { forgive_micro, reference }) => {
    const request = { amountMicro: micros(forgive_micro), reference, actor: call.actor };
    const forgiven = await call.wallet(id).forgive(request);
    return forgiven.ok ? success({ owed_micro: forgiven.value.owedMicro }) : forgiven;
  },
);

/** Handles `GET /orgs/{id}/credits`. */
export const getCreditRows = withOrganization(
  queryOf(creditsQuerySchema),
  async (call, { id }, { limit, after = null }) => {
    const credits = await call.wallet(id).creditPage(limit, after);
    return credits.ok ? success(creditPageView(credits.value, null)) : credits;
  },
);
