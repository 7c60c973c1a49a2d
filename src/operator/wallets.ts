import * as z from "zod/mini";
import { success, invalid } from "../shared/failure.ts";
import { timestamp } from "../shared/clock.ts";
import { micros } from "../shared/money.ts";
import {
  parseFields,
  wholeNumberParameterWithDefault,
  pageQuerySchema,
  parseBody,
} from "../shared/http/parse-body.ts";
import { bodyOf, noFields, queryOf, withOrganization } from "./organization-call.ts";
import type { OperatorCall } from "./operator-context.ts";
import type { ReconcileState } from "../shared/contracts/reconciliation.ts";
import type { LedgerRow } from "../shared/contracts/wallet.ts";
import { parseStoredJson } from "../shared/stored-json.ts";
import { readMemberIdsByKeyId } from "../accounts/keys/keys.store.ts";
import { parseEventsQuery, eventsView, alertsView } from "../money/wallet/routes/reads.route.ts";
import { readUsageReport } from "../money/wallet/routes/usage.route.ts";
import { generationSchema } from "../shared/generation.ts";
import { RESERVED_REFERENCE_PREFIXES } from "../shared/credit-reference.ts";
import { callObject } from "../shared/reach-object.ts";

export const creditSchema = z.object({
  amount_micro: z
    .int("must be a whole number of micros")
    .check(z.refine((amount) => amount !== 0, "must not be 0")),
  reference: z.string().check(
    z.minLength(1),
    z.maxLength(200),
    z.refine(
      (text) => !RESERVED_REFERENCE_PREFIXES.some((prefix) => text.startsWith(prefix)),
      "can't start with stripe:, owed: or rebuild:, which are reserved",
    ),
  ),
});

export const walletReconciliationSchema = z.object({
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

export const ledgerQuerySchema = z.object({
  after_seq: wholeNumberParameterWithDefault(0, Number.MAX_SAFE_INTEGER, 0),
  order: z._default(z.enum(["asc", "desc"]), "asc"),
  before_seq: wholeNumberParameterWithDefault(1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  limit: wholeNumberParameterWithDefault(1, 1000, 100),
});

/** Handles `POST /orgs/{id}/credits`. Changes the balance once per `reference`. */
export const postCredits = withOrganization(bodyOf(creditSchema), async (call, { id }, fields) => {
  const { amount_micro, reference } = fields;
  const request = { amountMicro: micros(amount_micro), reference, actor: call.actor };
  const answer = await call.wallet(id).credit(request);
  return answer.ok ? success({ credits_micro: answer.value.creditsMicro }) : answer;
});

/** Handles `GET /orgs/{id}/ledger`. */
export const getLedger = withOrganization(
  queryOf(ledgerQuerySchema),
  async (call, { id }, query) => {
    const { after_seq, before_seq, limit, order } = query;
    const wallet = call.wallet(id);
    if (order === "desc") {
      const newest = await wallet.newestLedger(before_seq, limit);
      if (!newest.ok) return newest;
      return success({ rows: newest.value.map(ledgerView), next_after_seq: 0 });
    }
    const answer = await wallet.ledger(after_seq, limit);
    if (!answer.ok) return answer;
    const rows = answer.value.rows.map(ledgerView);
    return success({ rows, next_after_seq: answer.value.nextAfterSeq });
  },
);

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
export const postReconcile = withOrganization(readReconciliation, async (call, { id }, fields) => {
  const { after, within_ms: withinMs } = fields;
  const from = parseReconcileState(after ?? "");
  const answer = await call.wallet(id).reconcile({
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
});

function readReconciliation({ body }: OperatorCall) {
  return parseFields(walletReconciliationSchema, [], body ?? {});
}

/** Handles `GET /orgs/{id}/usage`. */
export const getUsage = withOrganization(noFields, (call, { id }) =>
  readUsageReport(call.url, call.now, {
    ask: (ask) => ask(call.wallet(id)),
    members: async () => success(await readMemberIdsByKeyId(call.db, id)),
  }),
);

/** Handles `GET /orgs/{id}/alerts`. */
export const getAlerts = withOrganization(queryOf(pageQuerySchema), async (call, { id }, page) => {
  const answer = await call.wallet(id).alerts(page.limit, page.offset);
  return answer.ok ? success(alertsView(answer.value, page)) : answer;
});

/** Handles `GET /orgs/{id}/events`. */
export const getEvents = withOrganization(
  ({ url }) => parseEventsQuery(url),
  async (call, { id }, query) => {
    const answer = await call.wallet(id).events(query);
    return answer.ok ? success(eventsView(answer.value)) : answer;
  },
);

/** The request body: the log line `settlement_unsaved`, of which only these fields are used. */
export const unsavedSettlementSchema = z.object({
  request_id: z
    .string()
    .check(z.regex(/^req_[0-9A-Za-z]{24}$/, "must be a request's id: req_ and 24 characters")),
  org_id: z.optional(z.string()),
  cost_micro: z.int().check(z.minimum(0)),
  generation: generationSchema,
});

/**
 * Handles `POST /orgs/{id}/settle`. Charges a settlement from the log once. The results `voided`
 * and `unknown` mean that nothing is charged.
 */
export const postUnsavedSettlement = withOrganization(
  ({ body }) => parseBody(unsavedSettlementSchema, body),
  async (call, organization, { request_id: id, org_id, cost_micro, generation }) => {
    if (org_id !== undefined && org_id !== organization.id) {
      return invalid("org_id must be the organization of the path.", "org_id");
    }
    const settlement = { id, cost: micros(cost_micro), generation };
    const answer = await call.wallet(organization.id).settle(settlement, call.actor);
    if (!answer.ok) return answer;
    const { value } = answer;
    const isSettled = value.kind === "settled";
    return success({
      result: value.kind,
      charged_micro: isSettled ? value.charged : 0,
      shortfall_micro: isSettled ? value.shortfall : 0,
    });
  },
);

/**
 * Handles `POST /orgs/{id}/rebuild-wallet`. Restores a lost wallet from D1. Returns 409 if the
 * wallet is intact.
 */
export const postRebuildWallet = withOrganization(noFields, async (call, { id }) => {
  const answer = await call.wallet(id).rebuild(id, call.actor);
  if (!answer.ok) return answer;
  // Adds the payments that followed the last publish. If this fails, the payments sweep retries it.
  await callObject(() => call.payments(id).poke());
  const { creditsMicro, heldMicro, openHolds } = answer.value;
  return success({ credits_micro: creditsMicro, held_micro: heldMicro, open_holds: openHolds });
});
