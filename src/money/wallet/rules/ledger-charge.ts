import { micros } from "../../../shared/money.ts";
import type { Settlement } from "../../../shared/contracts/wallet.ts";
import type { KnownHold, Posting } from "./ledger.ts";
import { isQuotaHold } from "./open-holds.ts";
import type { OpenHold } from "./open-holds.ts";

/**
 * Returns the settlement and posting to store. For a hold that counts only against quotas, the
 * ledger charge is 0, and `generation.purpose` contains the charged amount.
 */
export function ledgerChargeOf(
  settlement: Settlement,
  posting: Posting,
  known: KnownHold | OpenHold,
): { readonly settlement: Settlement; readonly posting: Posting } {
  const { purpose = null, granted } = known;
  if (purpose === null) return { settlement, posting };
  const generation = { ...settlement.generation, purpose };
  if (!isQuotaHold(known)) return { settlement: { ...settlement, generation }, posting };
  const { charged } = posting;
  const own = { ...purpose, held: granted ?? charged, charged };
  return {
    settlement: { ...settlement, cost: micros(0), generation: { ...generation, purpose: own } },
    posting: { ...posting, charged: micros(0), shortfall: micros(0) },
  };
}
