import * as z from "zod/mini";
import type { AppContext } from "../../shared/http/context.ts";
import { accepted, readBody } from "../../shared/http/endpoint.ts";
import {
  singleValueSchema,
  parseFields,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../shared/http/parse-body.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { PURCHASE_ID_PREFIX } from "../../shared/contracts/payments.ts";
import type {
  PurchaseRequest,
  PaymentsMethods,
  PurchaseRecord,
} from "../../shared/contracts/payments.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import { actorOfCaller } from "../../shared/caller.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { hashIdempotentRequest, readIdempotencyKey } from "../../shared/idempotency.ts";
import { creationTimeOfId } from "../../shared/id.ts";
import { micros, MICROS_PER_DOLLAR } from "../../shared/money.ts";
import { callObjectWithRetries, callObject } from "../../shared/reach-object.ts";
import { readOrganizationForPurchase } from "./payments.store.ts";
import { creditPageView, purchasePageView, purchaseView } from "./payment-views.ts";

const RETRY_BUDGET_MS = 8000;

export const newPurchaseSchema = z.object({
  amount_dollars: z.int("must be a whole number of dollars").check(z.minimum(1)),
  method: z.enum(["checkout", "card"]),
  save_card: z.optional(z.boolean()),
});

/** Handles POST /v1/credits/purchases. The purchase continues in the background. */
export async function createPurchaseRoute(c: AppContext) {
  const { config, admitted } = c.var;
  const name = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!name.ok) return name;
  const body = await readBody(c);
  if (!body.ok) return body;
  const fields = parseFields(newPurchaseSchema, [], body.value.json);
  if (!fields.ok) return fields;
  if (config.payments === null) return refuse({ kind: "payments_off" });
  if (name.value === null) {
    return invalid("A purchase requires the header 'Idempotency-Key'.", "Idempotency-Key");
  }
  const { amount_dollars: dollars, method, save_card: saveCard = false } = fields.value;
  const { PURCHASE_DOLLARS_MIN: least, PURCHASE_DOLLARS_MAX: most } = config.numbers;
  if (dollars < least || dollars > most) {
    return invalid(`amount_dollars must be a number from ${least} to ${most}.`, "amount_dollars");
  }
  const buyer = await readBuyer(c);
  if (!buyer.ok) return buyer;
  const { caller } = admitted;
  const { orgId, keyId } = caller;
  const named = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  const buying: PurchaseRequest = {
    ...buyer.value,
    amountMicro: micros(dollars * MICROS_PER_DOLLAR),
    method,
    saveCard: method === "checkout" && saveCard,
    idempotency: await hashIdempotentRequest(name.value, named),
    actor: actorOfCaller(caller),
    isPerson: caller.isPerson === true,
  };
  const bought = await callPayments(c, (payments) => payments.buy(buying));
  return bought.ok ? acceptedPurchase(c, bought.value) : bought;
}

function acceptedPurchase(c: AppContext, purchase: PurchaseRecord) {
  c.header("location", `/v1/credits/purchases/${purchase.id}`);
  return accepted(purchaseView(purchase));
}

export const purchasesQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 20),
  after: z.optional(
    singleValueSchema.check(z.regex(/^pur_[0-9A-Za-z]{24}$/, "must be a purchase's id")),
  ),
});

export async function listPurchasesRoute(c: AppContext) {
  const page = parseQuery(purchasesQuerySchema, c.req.url);
  if (!page.ok) return page;
  const { limit, after = null } = page.value;
  const found = await callPayments(c, (payments) => payments.purchases(limit, after));
  return found.ok ? success(purchasePageView(found.value, purchaseView)) : found;
}

export async function readPurchaseRoute(c: AppContext) {
  const found = await callByPurchaseId(c, (payments, id) => payments.purchase(id));
  return found.ok ? success(purchaseView(found.value)) : found;
}

export async function cancelPurchaseRoute(c: AppContext) {
  const found = await callByPurchaseId(c, (payments, id) => payments.cancel(id));
  return found.ok ? accepted(purchaseView(found.value)) : found;
}

export async function createBillingPortalRoute(c: AppContext) {
  if (c.var.config.payments === null) return refuse({ kind: "payments_off" });
  const buyer = await readBuyer(c);
  if (!buyer.ok) return buyer;
  const { orgId, orgName } = buyer.value;
  const returnUrl = `${new URL(c.req.url).origin}/console/#/credits`;
  return callPayments(c, (payments) => payments.portal({ orgId, orgName, returnUrl }));
}

export const creditsQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  after: z.optional(
    z.pipe(
      singleValueSchema.check(
        z.regex(/^\d{1,15}$/, "must be the next_after of an earlier response"),
      ),
      z.transform(Number),
    ),
  ),
});

export async function readCreditsRoute(c: AppContext) {
  const page = parseQuery(creditsQuerySchema, c.req.url);
  if (!page.ok) return page;
  const { limit, after = null } = page.value;
  const { orgId } = c.var.admitted.caller;
  const objects = objectsOf(c.env);
  const found = await callObject(() => objects.wallet(orgId).creditPage(limit, after));
  if (!found.ok) return found;
  const { config } = c.var;
  if (config.payments === null) return success(creditPageView(found.value, null));
  const card = await callObject(() => objects.payments(orgId).savedCard());
  if (!card.ok) return card;
  const { PURCHASE_DOLLARS_MIN: dollarsMin, PURCHASE_DOLLARS_MAX: dollarsMax } = config.numbers;
  return success(creditPageView(found.value, { dollarsMin, dollarsMax, card: card.value }));
}

async function readBuyer(
  c: AppContext,
): Promise<Result<Pick<PurchaseRequest, "orgId" | "orgName" | "orgCreatedAt" | "returnUrl">>> {
  const { orgId, keyId } = c.var.admitted.caller;
  const fields = { org_id: orgId, key_id: keyId };
  const found = await queryDatabase(
    () => readOrganizationForPurchase(c.env.DB, orgId),
    "buyer_unreadable",
    fields,
  );
  if (!found.ok) return found;
  if (found.value === null) return refuse({ kind: "storage_unavailable" });
  const { name: orgName, createdAt: orgCreatedAt } = found.value;
  const returnUrl = `${new URL(c.req.url).origin}/console/#/credits?purchase=`;
  return success({ orgId, orgName, orgCreatedAt, returnUrl });
}

/** Calls the payment object with retries, so `call` must be safe to repeat. */
async function callPayments<T>(
  c: AppContext,
  call: (payments: PaymentsMethods) => Promise<Result<T>>,
): Promise<Result<T>> {
  if (c.var.config.payments === null) return refuse({ kind: "payments_off" });
  const { orgId } = c.var.admitted.caller;
  const reached = await callObjectWithRetries(() => call(objectsOf(c.env).payments(orgId)), {
    budgetMs: RETRY_BUDGET_MS,
  });
  return reached.unanswered ? refuse(reached.failure) : reached.result;
}

function callByPurchaseId<T>(
  c: AppContext,
  call: (payments: PaymentsMethods, id: string) => Promise<Result<T>>,
): Promise<Result<T>> {
  const id = c.req.param("id") ?? "";
  if (creationTimeOfId(id, PURCHASE_ID_PREFIX) === null) {
    return Promise.resolve(refuse({ kind: "not_found", message: "No such purchase." }));
  }
  return callPayments(c, (payments) => call(payments, id));
}
