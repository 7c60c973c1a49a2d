import * as z from "zod";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { micros } from "../lib/money.ts";
import { readFields, wholeParameter } from "./fields.ts";
import { organizationOf } from "./organizations.ts";
import type { JsonObject, OperatorContext, OperatorRequest } from "./operator-context.ts";

const credit = z.object({
  amount_micro: z
    .int("must be a whole number of micros")
    .refine((amount) => amount !== 0, "must not be 0"),
  reference: z
    .string("must be a string")
    .min(1, "must not be empty")
    .max(200, "must be at most 200 characters"),
});

const ledgerPage = z.object({
  after_seq: wholeParameter(0, Number.MAX_SAFE_INTEGER).default(0),
  limit: wholeParameter(1, 1000).default(100),
});

/** `POST /orgs/{id}/credits`: adds, or corrects with a negative amount; once for each `reference`. */
export async function postCredits(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Result<JsonObject>> {
  const fields = readFields(credit, request.body);
  if (!fields.ok) return fields;
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const { amount_micro, reference } = fields.value;
  const answer = await context
    .wallet(found.value.id)
    .credit({ amountMicro: micros(amount_micro), reference });
  return answer.ok ? success({ credits_micro: answer.value.creditsMicro }) : answer;
}

/** `GET /orgs/{id}/ledger?after_seq&limit`. */
export async function getLedger(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Result<JsonObject>> {
  const fields = readFields(ledgerPage, Object.fromEntries(request.query));
  if (!fields.ok) return fields;
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const { after_seq, limit } = fields.value;
  const answer = await context.wallet(found.value.id).ledger(after_seq, limit);
  if (!answer.ok) return answer;
  return success({ rows: answer.value.rows, next_after_seq: answer.value.nextAfterSeq });
}

/** `POST /orgs/{id}/reconcile`: the wallet compares itself with its ledger, its holds and the book. */
export async function postReconcile(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Result<JsonObject>> {
  const found = await organizationOf(context, request);
  return found.ok ? await context.wallet(found.value.id).reconcile() : found;
}
