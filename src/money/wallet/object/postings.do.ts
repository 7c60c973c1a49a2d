import { assert } from "../../../shared/assert.ts";
import type { Actor } from "../../../shared/event.ts";
import { conflict, invalid, refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { logWarning } from "../../../shared/log.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Generation } from "../../../shared/generation.ts";
import { declaredTagsToJson } from "../../../shared/tags.ts";
import { tokenCountsOf } from "../../../shared/usage-sums.ts";
import { findBalanceAlert } from "../rules/alerts.ts";
import { creationTimeOfHoldId } from "../rules/hold-ids.ts";
import {
  balanceAfterCredit,
  decideSettlement,
  findStoredSettlement,
  ledgerChargeOf,
} from "../rules/ledger.ts";
import type { KnownHold, HoldPosting } from "../rules/ledger.ts";
import { removeOpenHold, findDueHolds } from "../rules/open-holds.ts";
import type { OpenHold } from "../rules/open-holds.ts";
import { findFreeAmountForCharge } from "../rules/limits.ts";
import { addUsage } from "../rules/usage-totals.ts";
import { raiseAlerts, findLowBalanceRearmSeq } from "./alerts.do.ts";
import {
  applyMeterChanges,
  computeMeterChanges,
  metersOfRequest,
  adjustHeldOfOwners,
} from "./budget-memory.do.ts";
import type { CountedRequest } from "./budget-memory.do.ts";
import { findCrossedLimits, emitCrossedLimits, collectQuotaAlerts } from "./budget-events.do.ts";
import { addEvent } from "./event-log.do.ts";
import type { WalletEvent } from "./event-log.do.ts";
import {
  insertLedgerEntry,
  insertRequest,
  getOrInsertName,
  selectRequest,
  markHoldExpired,
  updateSettledRequest,
  markHoldVoided,
} from "../tables/request-rows.do.ts";
import { sharedChargeFieldsJson } from "../tables/generation-json.ts";
import { updateWalletRow } from "../tables/wallet-row.do.ts";
import type {
  WalletBalance,
  CreditRequest,
  SettleResult,
  Settlement,
  VoidResult,
} from "../../../shared/contracts/wallet.ts";
import { addChargeToDay, storeCharges } from "./charges.do.ts";
import type { ChargeGroupsByDay } from "./charges.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx } from "./memory.do.ts";
import { setWarmRoute } from "./warm-routes.do.ts";

export function settle(
  tx: Tx,
  settlement: Settlement,
  actor: Actor | null = null,
): Result<SettleResult> {
  const { id, cost, generation } = settlement;
  if (creationTimeOfHoldId(id) === null) return refuse({ kind: "internal" });
  assert(Number.isSafeInteger(cost) && cost >= 0, "a cost is whole micros, never negative");
  const counts = Object.values(generation.usage);
  assert(
    counts.every((n) => Number.isSafeInteger(n) && n >= 0),
    "usage is in whole tokens",
  );
  const known = tx.memory.ledger.holds.get(id) ?? selectRequest(tx.sql, id);
  if (known === null) {
    logWarning("settle_unknown", { org_id: tx.memory.row.orgId, id, cost });
    return success({ kind: "unknown" });
  }
  const before = "state" in known ? findStoredSettlement(known) : null;
  return success(before ?? postCharge(tx, settlement, { known, actor }));
}

/** Maximum changed meters in memory before a checkpoint stores them (about 12 MB). */
const UNSAVED_MAX = 20_000;

function postCharge(
  tx: Tx,
  settlement: Settlement,
  { known, actor }: { readonly known: KnownHold | OpenHold; readonly actor: Actor | null },
): SettleResult {
  const { memory } = tx;
  const limitFree = limitFreeOf(tx, known, settlement.generation.model);
  const posting = decideSettlement(memory.ledger, { ...settlement, known, limitFree });
  const ledgerCharge = ledgerChargeOf(settlement, posting, known);
  const balance = micros(memory.ledger.balance - ledgerCharge.posting.charged);
  const seq = memory.ledger.seq + (ledgerCharge.posting.shortfall > 0 ? 2 : 1);
  const counts = computeMeterChanges(tx, countedCharge(tx, settlement, { known, posting }));
  const crossings = collectQuotaAlerts(tx, counts, known.period);
  const low = findBalanceAlert(balance, memory.row.settings.lowBalanceThresholdMicro);
  if (low !== null) crossings.push(low);
  const crossed = findCrossedLimits(counts);
  const sold = getOrInsertName(tx.sql, memory.names, sharedChargeFieldsJson(settlement.generation));
  const write = (): void => {
    storeCharge(tx, ledgerCharge.settlement, {
      posting: ledgerCharge.posting,
      sold,
      keyId: known.keyId,
    });
    raiseAlerts(tx, crossings, seq);
    emitCrossedLimits(tx, crossed, { period: known.period, nowMs: tx.nowMs });
    if (actor !== null) addEvent(tx, chargeEvent(settlement, posting, actor));
  };
  const hasEvents = crossings.length + crossed.length > 0 || actor !== null;
  const isOneRow = !posting.late && ledgerCharge.posting.shortfall === 0 && !hasEvents;
  if (isOneRow) write();
  else tx.storage.transactionSync(write);
  dropOpenHold(tx, known.id);
  applyMeterChanges(memory, counts);
  memory.ledger.balance = balance;
  memory.ledger.seq = seq;
  countUsage(tx, settlement, { known, posting, inLedger: ledgerCharge.posting.charged });
  if (settlement.generation.warm !== undefined) setWarmRoute(tx, settlement.generation.warm);
  memory.routine++;
  if (memory.budgets.unsaved.size > UNSAVED_MAX) takeCheckpoint(tx);
  logPosting(tx, settlement, posting);
  return { kind: "settled", charged: posting.charged, shortfall: posting.shortfall };
}

/** Adds a charge to usage totals. `inLedger` excludes holds that count only against quotas. */
function countUsage(
  tx: Tx,
  { generation }: Settlement,
  { known, posting, inLedger }: Charge,
): void {
  const { memory } = tx;
  const posted = {
    ...known,
    charged: posting.charged,
    model: generation.model,
    tags: declaredTagsToJson(generation.tags, memory.row.settings.tagKeys),
    ...tokenCountsOf(generation.usage),
  };
  addUsage(memory.usage, { ...posted, charged: inLedger });
  memory.tokens
    .get(known.keyId)
    ?.setActualTokens(known.id, posted.promptTokens + posted.completionTokens);
}
type Charge = {
  readonly known: KnownHold | OpenHold;
  readonly posting: HoldPosting;
  readonly inLedger: Micros;
};

function storeCharge(
  tx: Tx,
  settlement: Settlement,
  {
    posting,
    sold,
    keyId,
  }: { readonly posting: HoldPosting; readonly sold: number; readonly keyId: string },
): void {
  const { ledger } = tx.memory;
  const balance = micros(ledger.balance - posting.charged);
  const place = { seq: ledger.seq + 1, balance, at: tx.nowMs };
  updateSettledRequest(tx.sql, settlement, { posting, place, sold });
  const requestId = settlement.id;
  if (posting.late) {
    insertLedgerEntry(tx.sql, {
      place,
      kind: "usage",
      amount: micros(0 - posting.charged),
      requestId,
    });
    storeLateCharge(tx, settlement, { keyId, posting });
  }
  if (posting.shortfall === 0) return;
  insertLedgerEntry(tx.sql, {
    place: { ...place, seq: place.seq + 1 },
    kind: "shortfall",
    amount: micros(0),
    absorbed: posting.shortfall,
    requestId,
  });
}

/** Adds a late charge to the daily totals, because `foldChargesIntoTotals` skips late charges. */
function storeLateCharge(
  { sql, memory, nowMs }: Tx,
  { cost, generation }: Settlement,
  { keyId, posting }: { readonly keyId: string; readonly posting: HoldPosting },
): void {
  const charges: ChargeGroupsByDay = new Map();
  const one = { seq: memory.ledger.seq + 1, at: nowMs, keyId, generation, cost };
  addChargeToDay(charges, memory.tagKeys, { ...one, charged: posting.charged });
  storeCharges(sql, charges);
}

function logPosting(tx: Tx, settlement: Settlement, posting: HoldPosting): void {
  const { id, cost } = settlement;
  const fields = { org_id: tx.memory.row.orgId, id, cost, charged: posting.charged };
  if (posting.overHold) logWarning("over_hold", fields);
  if (posting.late) logWarning("late_settle", fields);
  const { shortfall } = posting;
  if (shortfall > 0) logWarning("shortfall", { ...fields, shortfall });
}

/**
 * Releases a hold without a charge. For an unknown ID, stores a row that rejects the hold if it
 * arrives later. `absorbed` is a call that no customer pays.
 */
export function voidHold(
  tx: Tx,
  id: string,
  absorbed: Generation | null = null,
): Result<VoidResult> {
  if (creationTimeOfHoldId(id) === null) return refuse({ kind: "internal" });
  const { memory, nowMs, sql } = tx;
  const open = memory.ledger.holds.get(id);
  const known = open !== undefined ? "held" : selectRequest(sql, id);
  if (known === null) {
    const never = { granted: null, externalId: null, endUserId: null, period: tx.period };
    insertRequest(
      sql,
      { key: getOrInsertName(sql, memory.names, ""), state: "voided", tokens: null, failure: null },
      { id, least: micros(0), most: micros(0) },
      { ...never, admittedAt: nowMs, expiresAt: nowMs },
    );
    return success({ kind: "voided" });
  }
  if (known !== "held" && known.state === "settled") {
    return success({ kind: "settled", charged: known.charged });
  }
  if (known === "held" || known.state === "expired") {
    markHoldVoided(sql, id, { at: nowMs, absorbed, names: memory.names });
  }
  dropOpenHold(tx, id);
  if (open !== undefined) memory.tokens.get(open.keyId)?.setActualTokens(id, 0);
  return success({ kind: "voided" });
}

/** Expires due holds. Runs before each decision. */
export function expireDueHolds(tx: Tx): void {
  const { ledger } = tx.memory;
  if (tx.nowMs < ledger.nextExpiry) return;
  const due = findDueHolds(ledger, tx.nowMs);
  tx.storage.transactionSync(() => {
    for (const [index, one] of due.entries()) {
      const seq = ledger.seq + index + 1;
      markHoldExpired(tx.sql, one.id, { seq, balance: ledger.balance, at: tx.nowMs });
    }
  });
  for (const one of due) {
    ledger.seq++;
    dropOpenHold(tx, one.id);
    applyMeterChanges(tx.memory, computeMeterChanges(tx, countedExpiry(one, ledger.seq)));
  }
  if (due.length === 0) return;
  tx.memory.hasChanges = true;
  logWarning("holds_expired", { org_id: tx.memory.row.orgId, count: due.length });
}

function dropOpenHold(tx: Tx, id: string): void {
  const { ledger } = tx.memory;
  const open = ledger.holds.get(id);
  if (open === undefined) return;
  adjustHeldOfOwners(tx, open, -1);
  removeOpenHold(ledger, id);
}

function limitFreeOf(tx: Tx, known: KnownHold | OpenHold, model: string) {
  const at = { period: known.period, nowMs: tx.nowMs };
  const isLate = !tx.memory.ledger.holds.has(known.id);
  return findFreeAmountForCharge(metersOfRequest(tx, known), at, { model, isLate });
}

/** Returns the usage that a charge adds to limits. An expired hold's request is already counted. */
function countedCharge(
  { memory, nowMs }: Tx,
  { generation }: Settlement,
  { known, posting }: { readonly known: KnownHold | OpenHold; readonly posting: HoldPosting },
): CountedRequest {
  const { promptTokens, completionTokens } = tokenCountsOf(generation.usage);
  return {
    ...known,
    seq: memory.ledger.seq + 1,
    atMs: nowMs,
    models: [generation.model],
    amounts: {
      dollars: posting.charged,
      tokens: promptTokens + completionTokens,
      requests: posting.late ? 0 : 1,
    },
  };
}

/** Returns the usage that an expired hold counts against the limits: one request. */
function countedExpiry(hold: OpenHold, seq: number): CountedRequest {
  const amounts = { dollars: 0, tokens: 0, requests: 1 };
  return { ...hold, seq, atMs: hold.expiresAt, models: hold.models ?? null, amounts };
}

const REFERENCE_MAX = 200;

/** Adds an amount to the balance, once per reference. */
export function creditBalance(tx: Tx, request: CreditRequest): Result<WalletBalance> {
  const { amountMicro, reference } = request;
  assert(typeof reference === "string", "a credit has a reference");
  if (reference.length < 1 || reference.length > REFERENCE_MAX) {
    return invalid(`reference must have 1 to ${REFERENCE_MAX} characters.`, "reference");
  }
  if (!Number.isSafeInteger(amountMicro) || amountMicro === 0) {
    return invalid("amount_micro must be a whole number other than 0.", "amount_micro");
  }
  const before = findStoredCreditResult(tx, request);
  if (before !== null) return before;
  const decided = balanceAfterCredit(tx.memory.ledger, amountMicro);
  return decided.ok ? success(postCredit(tx, request, { balance: decided.value })) : decided;
}

/** Returns the stored response to a repeated credit, or null for a new reference. */
export function findStoredCreditResult(
  tx: Tx,
  request: CreditRequest,
): Result<WalletBalance> | null {
  const [row] = tx.sql
    .exec<{ amount: number; balance: number; held: number; open_holds: number }>(
      `SELECT amount, balance, held, open_holds FROM entries WHERE reference = ?1
      UNION ALL SELECT amount, balance, held, open_holds FROM adopted_credits WHERE reference = ?1`,
      request.reference,
    )
    .toArray();
  if (row === undefined) return null;
  if (row.amount !== request.amountMicro) {
    return conflict("This reference was already used with another amount.", "reference");
  }
  return success({
    creditsMicro: micros(row.balance),
    heldMicro: micros(row.held),
    openHolds: row.open_holds,
  });
}

/** Writes a ledger credit. `also` runs in the same transaction. */
export function postCredit(
  tx: Tx,
  request: CreditRequest,
  { balance, also = () => undefined }: { readonly balance: Micros; readonly also?: () => void },
): WalletBalance {
  const { memory, nowMs, sql } = tx;
  const { ledger } = memory;
  const seq = ledger.seq + 1;
  const answer = { creditsMicro: balance, heldMicro: ledger.held, openHolds: ledger.holds.size };
  const rearmedSeq = findLowBalanceRearmSeq(tx, balance, seq);
  const row = { ...memory.row, rearmedSeq };
  const low = findBalanceAlert(balance, row.settings.lowBalanceThresholdMicro);
  tx.storage.transactionSync(() => {
    insertLedgerEntry(sql, {
      place: { seq, balance, at: nowMs },
      kind: "credit",
      amount: request.amountMicro,
      reference: request.reference,
      held: answer.heldMicro,
      openHolds: answer.openHolds,
    });
    addEvent(tx, creditEvent(tx, request, balance));
    also();
    if (rearmedSeq !== memory.row.rearmedSeq) updateWalletRow(sql, row);
    if (low !== null) raiseAlerts(tx, [low], seq);
  });
  ledger.seq = seq;
  ledger.balance = balance;
  memory.row = row;
  memory.hasChanges = true;
  return answer;
}

function creditEvent({ memory }: Tx, request: CreditRequest, balance: Micros): WalletEvent {
  const { amountMicro, reference, actor } = request;
  const data = { amount_micro: amountMicro, balance_micro: balance, reference };
  return { type: "balance.credited", actor, subject: memory.row.orgId, data };
}

function chargeEvent({ id }: Settlement, posting: HoldPosting, actor: Actor): WalletEvent {
  const data = { charged_micro: posting.charged, shortfall_micro: posting.shortfall };
  return { type: "balance.charged", actor, subject: id, data };
}
