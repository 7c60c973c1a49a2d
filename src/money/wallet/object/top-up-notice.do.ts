import { objectsOf } from "../../../shared/contracts/objects.ts";
import { success } from "../../../shared/failure.ts";
import { logWarning, errorMessageOf } from "../../../shared/log.ts";
import { withTimeout } from "../../../shared/timers.ts";
import type { Decisions } from "./decisions.do.ts";
import { markTopUpDelivered } from "./top-up.do.ts";

const NOTIFY_TIMEOUT_MS = 10_000;

/** Sends a requested top-up to the payments object. After a failure, the next publish retries. */
export async function notifyTopUp(decisions: Decisions, env: Env): Promise<void> {
  const memory = decisions.tryOpen()?.memory;
  const open = memory?.topUp.open ?? null;
  if (memory === undefined || open === null || open.isTold) return;
  const { orgId } = memory.row;
  const { id, amountMicro, wantedAt } = open;
  try {
    const notifying = objectsOf(env).payments(orgId).topUp({ orgId, id, amountMicro, wantedAt });
    if (!(await withTimeout(notifying, NOTIFY_TIMEOUT_MS)).ok) throw new Error("it was not taken");
    decisions.decideSilently((tx) => {
      markTopUpDelivered(tx, id);
      return success(null);
    });
  } catch (error) {
    logWarning("top_up_not_told", { org_id: orgId, id, reason: errorMessageOf(error) });
    const later = decisions.tryOpen()?.memory;
    if (later !== undefined) later.hasChanges = true;
  }
}
