import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { elapsedMs } from "./clock.ts";
import { logWarning, errorMessageOf } from "./log.ts";
import type { LogFields } from "./log.ts";
import { toStorageFailure } from "./storage-failure.ts";
import { afterTimeout, withTimeout } from "./timers.ts";

const DATABASE_TIMEOUT_MS = 5000;
const CONCURRENT_STATEMENTS_MAX = 8;
/** Maximum wait for a slot, and interval between checks, in ms. */
const SLOT_WAIT_MS_MAX = 5000;
const SLOT_CHECK_MS = 10;
/** Maximum time that a statement occupies a slot, in ms. */
const SLOT_LEASE_MS = 30_000;

const runningByOrg = new Map<string, Set<{ readonly sinceMs: number }>>();

/**
 * Runs an organization's D1 statement. If D1 is slow, busy or fails, logs a warning and fails with
 * `storage_unavailable` or `overloaded`. The statement must be safe to repeat, because it may still
 * run.
 */
export async function queryDatabase<T>(
  statement: () => Promise<T>,
  event: string,
  fields: LogFields & { readonly org_id: string },
): Promise<Result<T>> {
  const orgId = fields.org_id;
  const slot = { sinceMs: elapsedMs() };
  for (let waitedMs = 0; !takeSlot(orgId, slot); waitedMs = elapsedMs() - slot.sinceMs) {
    if (waitedMs >= SLOT_WAIT_MS_MAX) return refuse({ kind: "overloaded" });
    await new Promise<void>((resolve) => afterTimeout(SLOT_CHECK_MS, resolve));
  }
  const statementResult = Promise.resolve()
    .then(statement)
    // The slot stays taken after a timeout until D1 finishes the statement.
    .finally(() => releaseSlot(orgId, slot));
  try {
    return success(await withTimeout(statementResult, DATABASE_TIMEOUT_MS));
  } catch (error) {
    logWarning(event, { ...fields, reason: errorMessageOf(error) });
    return refuse(toStorageFailure(error));
  }
}

type StatementSlot = { readonly sinceMs: number };

function takeSlot(orgId: string, slot: StatementSlot): boolean {
  const slots = runningByOrg.get(orgId) ?? new Set<StatementSlot>();
  for (const one of slots) if (elapsedMs() - one.sinceMs > SLOT_LEASE_MS) slots.delete(one);
  if (slots.size >= CONCURRENT_STATEMENTS_MAX) return false;
  runningByOrg.set(orgId, slots.add(slot));
  return true;
}

function releaseSlot(orgId: string, slot: StatementSlot): void {
  const slots = runningByOrg.get(orgId);
  slots?.delete(slot);
  if (slots?.size === 0) runningByOrg.delete(orgId);
}
