import { assert } from "../../../shared/assert.ts";
import { conflict, invalid, refuse, success } from "../../../shared/failure.ts";
import type { Failure, Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { freeBalance, isQuotaHold } from "./open-holds.ts";
import type { HoldTotals, OpenHold } from "./open-holds.ts";
import type {
  HoldRequest,
  RequestState,
  SettleResult,
  Settlement,
} from "../../../shared/contracts/wallet.ts";

/** A stored hold in any state. `granted` is null if the hold was rejected. */
export type KnownHold = Omit<OpenHold, "granted" | "tokens" | "expiresAt"> & {
  readonly state: RequestState;
  readonly least: Micros;
  readonly most: Micros;
  readonly granted: Micros | null;
  readonly tokens: number | null;
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly failure: Failure | null;
  readonly expiresAt?: number;
};

type HoldContent = Pick<KnownHold, "id" | "least" | "most" | "externalId">;

/**
 * The charge of a settled hold. `late`: the hold was no longer open. `overHold`: the cost exceeded
 * the open hold.
 */
export type HoldPosting = {
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly late: boolean;
  readonly overHold: boolean;
};

function chargeOf(cost: Micros, held: Micros, free: number): Micros {
  return micros(Math.min(cost, held + Math.max(0, free)));
}

/**
 * Returns how much of a free amount a request can hold. Without an output cap, half stays free for
 * concurrent requests.
 */
export function computeHoldableShare(free: number, hasCap: boolean): number {
  return hasCap ? free : Math.floor(free / 2);
}

export type HoldDecisionInput = Pick<HoldRequest, "least" | "most" | "sure" | "hasCap"> & {
  readonly limits: readonly HoldLimit[];
  readonly isQuota?: boolean;
};

/**
 * An upper bound of a hold, such as a budget or the balance. The free amount is `left` minus `held`
 * (open holds).
 */
export type HoldLimit = {
  readonly left: number;
  readonly held: number;
  /** Whether a hold must cover the upper bound of the prompt's tokens instead of an estimate. */
  readonly isStrict: boolean;
  /** Whether the limit, once used up, rejects even free requests. */
  readonly blocksAtZero: boolean;
  readonly refuse: (short: { readonly required: Micros; readonly onlyHolds: boolean }) => Failure;
};

export function decideHold(ledger: HoldTotals, input: HoldDecisionInput): Result<Micros> {
  const { least, most, sure, hasCap } = input;
  assert(least >= 0 && least <= sure && sure <= most, "a hold needs 0 <= least <= sure <= most");
  const required = input.limits.some(({ isStrict }) => isStrict) ? sure : least;
  const limits = input.isQuota === true ? input.limits : [...input.limits, balanceLimit(ledger)];
  const fits = ({ blocksAtZero }: HoldLimit, amount: number): boolean =>
    amount >= required && (amount > 0 || !blocksAtZero);
  const short = limits.find((limit) => !fits(limit, limit.left - limit.held));
  if (short !== undefined) {
    const onlyHolds = limits.every((limit) => fits(limit, limit.left));
    return refuse(short.refuse({ required, onlyHolds }));
  }
  const free = Math.min(...limits.map(({ left, held }) => left - held));
  return success(micros(Math.max(required, Math.min(most, computeHoldableShare(free, hasCap)))));
}

function balanceLimit({ balance, held }: HoldTotals): HoldLimit {
  return {
    left: balance,
    held,
    isStrict: false,
    blocksAtZero: false,
    refuse: ({ required: requiredMicro, onlyHolds }) => ({
      kind: "balance_too_low",
      balanceMicro: balance,
      heldMicro: held,
      requiredMicro,
      onlyHolds,
    }),
  };
}

/**
 * Returns the stored response to a repeated hold request, or `overloaded` if the hold was voided or
 * expired. Throws if the request differs.
 */
export function findStoredHoldResult(known: KnownHold, content: HoldContent): Result<Micros> {
  if (known.granted === null && known.state === "voided") return refuse({ kind: "overloaded" });
  const same =
    known.least === content.least &&
    known.most === content.most &&
    known.externalId === content.externalId;
  assert(same, `hold ${content.id} came again with other content`);
  if (known.failure !== null) return refuse(known.failure);
  const isGranted = known.state === "held" || known.state === "settled";
  return isGranted && known.granted !== null
    ? success(known.granted)
    : refuse({ kind: "overloaded" });
}

/**
 * Decides the charge for a cost. A cost above the hold also uses the free balance, up to
 * `limitFree`, the amount that the limits still allow. With `isCapped`, the charge can't exceed the
 * hold.
 */
export function decideSettlement(
  ledger: HoldTotals,
  settled: {
    readonly known: KnownHold | OpenHold;
    readonly cost: Micros;
    readonly isCapped?: boolean;
    readonly limitFree: number;
  },
): HoldPosting {
  const { known, cost, limitFree } = settled;
  assert(cost >= 0, "a cost is never negative");
  const most = micros(settled.isCapped === true ? Math.min(cost, known.granted ?? cost) : cost);
  const free = Math.min(isQuotaHold(known) ? Infinity : freeBalance(ledger), limitFree);
  const open = ledger.holds.get(known.id);
  const held = open?.granted ?? micros(0);
  const charged = chargeOf(most, held, free);
  const shortfall = micros(Math.max(0, cost - charged));
  return {
    charged,
    shortfall,
    late: open === undefined,
    overHold: open !== undefined && cost > held,
  };
}

/**
 * Returns the stored result of a hold that has ended, or null for one that can still be settled.
 */
export function findStoredSettlement(known: KnownHold): SettleResult | null {
  const { state, charged, shortfall } = known;
  if (state === "settled") return { kind: "settled", charged, shortfall };
  if (state === "voided") return { kind: "voided" };
  return state === "refused" ? { kind: "unknown" } : null;
}

/**
 * Returns the settlement and posting to store. For a hold that counts only against quotas, the
 * ledger charge is 0, and `generation.purpose` contains the charge.
 */
export function ledgerChargeOf(
  settlement: Settlement,
  posting: HoldPosting,
  known: KnownHold | OpenHold,
): { readonly settlement: Settlement; readonly posting: HoldPosting } {
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

/**
 * Returns the balance after a credit. Fails above 2^53 - 1 micro-credits, or if a negative amount
 * would lower the balance below the open holds.
 */
export function balanceAfterCredit(ledger: HoldTotals, amount: Micros): Result<Micros> {
  const balance = ledger.balance + amount;
  if (!Number.isSafeInteger(balance)) {
    const message = `The balance can't exceed ${Number.MAX_SAFE_INTEGER} micro-credits. Use a smaller amount.`;
    return invalid(message, "amount_micro");
  }
  if (amount < 0 && balance < ledger.held) {
    const message = "The correction can't exceed the available balance.";
    return conflict(message, "amount_micro", "balance_too_low");
  }
  return success(micros(balance));
}
