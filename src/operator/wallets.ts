import * as z from "zod/mini";
import { success } from "../lib/failure.ts";
import type { Answer } from "../http/endpoint.ts";
import { timestamp } from "../lib/clock.ts";
import { micros } from "../lib/money.ts";
import { parseFields, parseQuery, wholeNumber } from "../http/parse-body.ts";
import { organizationOf } from "./organizations.ts";
import type { OperatorCall } from "./operator-context.ts";

export const credit = z.object({
  amount_micro: z
    .int("must be a whole number of micros")
    .check(z.refine((amount) => amount !== 0, "must not be 0")),
  reference: z.string().check(z.minLength(1), z.maxLength(200)),
});

const ledgerPage = z.object({
  after_seq: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0),
  limit: wholeNumber(1, 1000, 100),
});

/** `POST /orgs/{id}/credits`: adds, or corrects with a negative amount; once for each `reference`. */
export async function postCredits(call: OperatorCall): Promise<Answer> {
  const fields = parseFields(credit, [], call.body);
  if (!fields.ok) return fields;
  const found = await organizationOf(call);
  if (!found.ok) return found;
  const { amount_micro, reference } = fields.value;
  const answer = await call
    .wallet(found.value.id)
    .credit({ amountMicro: micros(amount_micro), reference, actor: call.actor });
  return answer.ok ? success({ credits_micro: answer.value.creditsMicro }) : answer;
}

/** `GET /orgs/{id}/ledger?after_seq&limit`. */
export async function getLedger(call: OperatorCall): Promise<Answer> {
  const fields = parseQuery(ledgerPage, call.url);
  if (!fields.ok) return fields;
  const found = await organizationOf(call);
  if (!found.ok) return found;
  const { after_seq, limit } = fields.value;
  const answer = await call.wallet(found.value.id).ledger(after_seq, limit);
  if (!answer.ok) return answer;
  const rows = answer.value.rows.map((row) => ({
    seq: row.seq,
    kind: row.kind,
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    created_at: timestamp(row.createdAt),
    reference: row.reference,
    generation_id: row.generationId,
  }));
  return success({ rows, next_after_seq: answer.value.nextAfterSeq });
}

/** `POST /orgs/{id}/reconcile`: the wallet compares itself with its ledger, its holds and the book. */
export async function postReconcile(call: OperatorCall): Promise<Answer> {
  const found = await organizationOf(call);
  if (!found.ok) return found;
  const answer = await call.wallet(found.value.id).reconcile();
  if (!answer.ok) return answer;
  const { creditsMicro, heldMicro, openHolds, differences } = answer.value;
  return success({
    credits_micro: creditsMicro,
    held_micro: heldMicro,
    open_holds: openHolds,
    differences,
  });
}
