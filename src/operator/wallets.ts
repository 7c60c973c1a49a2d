import * as z from "zod/mini";
import { success } from "../shared/failure.ts";
import { timestamp } from "../shared/clock.ts";
import { micros } from "../shared/money.ts";
import { parseFields, parseQuery, wholeNumberWithDefault } from "../shared/http/parse-body.ts";
import { findOrganizationOfCall } from "./organizations.ts";
import type { OperatorCall } from "./operator-context.ts";
import type { ReconcileState } from "../shared/contracts/reconciliation.ts";
import type { LedgerRow } from "../shared/contracts/wallet.ts";
import { parseStoredJson } from "../shared/stored-json.ts";

const RESERVED_PREFIXES: readonly string[] = ["stripe:", "owed:", "rebuild:"];

export const creditSchema = z.object({
  amount_micro: z
    .int("must be a whole number of micros")
    .check(z.refine((amount) => amount !== 0, "must not be 0")),
  reference: z.string().check(
    z.minLength(1),
    z.maxLength(200),
    z.refine(
      (text) => !RESERVED_PREFIXES.some((prefix) => text.startsWith(prefix)),
      "can't start with stripe:, owed: or rebuild:, which are reserved",
    ),
  ),
});

export const reconcileSchema = z.object({
  within_ms: z.nullish(z.int().check(z.minimum(0), z.maximum(60_000))),
  after: z.nullish(
    z
      .string()
      .check(
        z.refine(
          (text) => parseReconcileState(text) !== null,
          "must be the next_after of an earlier response",
        ),
      ),
  ),
});

function parseReconcileState(text: string): ReconcileState | null {
  try {
    const { tries, run } = parseStoredJson<ReconcileState>(text);
    return Number.isInteger(tries) && (run === null || typeof run.mark === "string")
      ? { tries, run }
      : null;
  } catch {
    return null;
  }
}

export const ledgerQuery = z.object({
  after_seq: wholeNumberWithDefault(0, Number.MAX_SAFE_INTEGER, 0),
  order: z._default(z.enum(["asc", "desc"]), "asc"),
  before_seq: wholeNumberWithDefault(1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  limit: wholeNumberWithDefault(1, 1000, 100),
});

/** Handles `POST /orgs/{id}/credits`. Changes the balance once per `reference`. */
export async function postCredits(call: OperatorCall) {
  const fields = parseFields(creditSchema, [], call.body);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { amount_micro, reference } = fields.value;
  const answer = await call
    .wallet(found.value.id)
    .credit({ amountMicro: micros(amount_micro), reference, actor: call.actor });
  return answer.ok ? success({ credits_micro: answer.value.creditsMicro }) : answer;
}

export async function getLedger(call: OperatorCall) {
  const fields = parseQuery(ledgerQuery, call.url);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { after_seq, before_seq, limit, order } = fields.value;
  const wallet = call.wallet(found.value.id);
  if (order === "desc") {
    const newest = await wallet.newestLedger(before_seq, limit);
    if (!newest.ok) return newest;
    return success({ rows: newest.value.map(ledgerView), next_after_seq: 0 });
  }
  const answer = await wallet.ledger(after_seq, limit);
  if (!answer.ok) return answer;
  const rows = answer.value.rows.map(ledgerView);
  return success({ rows, next_after_seq: answer.value.nextAfterSeq });
}

function ledgerView(row: LedgerRow) {
  return {
    seq: row.seq,
    kind: row.kind,
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    created_at: timestamp(row.createdAt),
    reference: row.reference,
    generation_id: row.generationId,
  };
}

/**
 * Handles `POST /orgs/{id}/reconcile`. Compares the wallet with its ledger, its holds and D1. With
 * `within_ms`, the next call can continue at `next_after`.
 */
export async function postReconcile(call: OperatorCall) {
  const fields = parseFields(reconcileSchema, [], call.body ?? {});
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { after, within_ms: withinMs } = fields.value;
  const from = parseReconcileState(after ?? "");
  const answer = await call.wallet(found.value.id).reconcile({
    ...(from !== null && { from }),
    ...(typeof withinMs === "number" && { withinMs }),
  });
  if (!answer.ok) return answer;
  const { creditsMicro, heldMicro, openHolds, differences, rowsRead, next } = answer.value;
  return success({
    credits_micro: creditsMicro,
    held_micro: heldMicro,
    open_holds: openHolds,
    differences,
    rows_read: rowsRead,
    ...(next !== undefined && { next_after: JSON.stringify(next) }),
  });
}
