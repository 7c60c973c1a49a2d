import { configOf } from "../../../shared/config/config.ts";
import { PURCHASE_ID_PREFIX } from "../../../shared/contracts/payments.ts";
import type { TopUpDisabledReason, TopUpFailure } from "../../../shared/contracts/payments.ts";
import { mintId } from "../../../shared/id.ts";
import { WEEK_MS, timestamp } from "../../../shared/clock.ts";
import { decideTopUp, recordFailedTopUp, recordTopUpRequest } from "../rules/top-up.ts";
import type { TopUpState } from "../rules/top-up.ts";
import { putTopUp } from "../tables/payment-rows.do.ts";
import { updateSettings } from "../tables/wallet-row.do.ts";
import { addEvent } from "./event-log.do.ts";
import type { WalletEvent } from "./event-log.do.ts";
import { nextPublishRevision } from "./memory.do.ts";
import type { Tx, WalletMemory } from "./memory.do.ts";

/**
 * Starts an automatic purchase if one is due. Returns the ID of the purchase in progress, or null.
 * `isShort`: the balance was too low for a request.
 */
export function startTopUpIfDue(tx: Tx, isShort: boolean): string | null {
  const { memory, nowMs, period } = tx;
  const { row, topUp: before, debts, ledger } = memory;
  const { autoTopUp: setting } = row.settings;
  if (setting === null) return before.open?.id ?? null;
  const { month, day } = period;
  const dailyMaxMicros = dailyMaxOf(tx);
  const status = { setting, balance: ledger.balance, owed: debts.owed, isShort, nowMs };
  const decided = decideTopUp(before, { ...status, month, day, dailyMaxMicros });
  if (decided === "none" || row.suspended || row.conflict !== null || dailyMaxMicros === 0) {
    return before.open?.id ?? null;
  }
  if (decided === "capped") {
    if (before.cappedMonth === period.month) return null;
    const data = { reason: "month_cap", until: null, declines: before.declines };
    storeTopUp(tx, { ...before, cappedMonth: period.month }, [pausedEvent(tx, data)]);
    return null;
  }
  const id = mintId(PURCHASE_ID_PREFIX, nowMs);
  const request = { id, amountMicro: setting.amountMicro, wantedAt: nowMs };
  const data = { method: "auto", amount_micro: setting.amountMicro };
  storeTopUp(tx, recordTopUpRequest(before, request, period), [
    { type: "purchase.created", subject: id, data },
  ]);
  return id;
}

function dailyMaxOf({ env, memory, nowMs }: Tx): number {
  const parsed = configOf(env);
  if (!parsed.ok || parsed.config.payments === null) return 0;
  const { CARD_DOLLARS_A_DAY: usual, FIRST_WEEK_DOLLARS_A_DAY: first } = parsed.config.numbers;
  return (nowMs - memory.row.madeAt < WEEK_MS ? Math.min(first, usual) : usual) * 1_000_000;
}

function pausedEvent({ memory }: Tx, data: WalletEvent["data"]): WalletEvent {
  return { type: "top_up.paused", subject: memory.row.orgId, data };
}

function storeTopUp(tx: Tx, state: TopUpState, events: readonly WalletEvent[]): void {
  tx.storage.transactionSync(() => {
    putTopUp(tx.sql, state);
    for (const event of events) addEvent(tx, event);
  });
  tx.memory.topUp = state;
  tx.memory.hasChanges = true;
}

export function recordTopUpFailure(tx: Tx, id: string, end: TopUpFailure): void {
  const { memory, nowMs } = tx;
  const after = recordFailedTopUp(memory.topUp, id, { end, nowMs });
  if (after === memory.topUp) return;
  if (after.disabledReason !== null) return disableWithState(tx, after, after.disabledReason);
  const until = after.pausedUntil === null ? null : timestamp(after.pausedUntil);
  storeTopUp(tx, after, [pausedEvent(tx, { reason: "declined", until, declines: after.declines })]);
}

export function disableTopUp(tx: Tx, reason: TopUpDisabledReason): void {
  const { memory } = tx;
  if (memory.row.settings.autoTopUp === null) return;
  disableWithState(tx, { ...memory.topUp, disabledReason: reason }, reason);
}

function disableWithState(tx: Tx, state: TopUpState, reason: TopUpDisabledReason): void {
  const { memory } = tx;
  const settings = { ...memory.row.settings, autoTopUp: null };
  tx.storage.transactionSync(() => {
    updateSettings(tx.sql, settings, nextPublishRevision(tx));
    const data = { reason };
    storeTopUp(tx, state, [{ type: "top_up.disabled", subject: memory.row.orgId, data }]);
  });
  memory.row = { ...memory.row, settings };
}

const RECHECK_MS = 600_000;

/** Returns when to check a paused top-up again (Unix ms), or Infinity. */
export function nextTopUpCheckAt({ row, topUp, ledger, clock }: WalletMemory): number {
  const { autoTopUp: setting } = row.settings;
  if (setting === null || topUp.open !== null || topUp.pausedUntil === null) return Infinity;
  if (ledger.balance >= setting.belowMicro) return Infinity;
  // If the pause ended without a purchase, another condition prevents it.
  return topUp.pausedUntil > clock ? topUp.pausedUntil : clock + RECHECK_MS;
}

/** Records that the payments object received the purchase. */
export function markTopUpDelivered(tx: Tx, id: string): void {
  const { open } = tx.memory.topUp;
  if (open?.id === id) storeTopUp(tx, { ...tx.memory.topUp, open: { ...open, isTold: true } }, []);
}
