import type { Region } from "../lib/caller.ts";
import { elapsedMs } from "../lib/clock.ts";
import { reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";
import { eachReceiver } from "../regions/outbox-delivery.ts";
import { deliverOutcome } from "../regions/outbox-message.ts";
import type { Delivery, OutcomeItem, OutcomeWallet } from "../regions/outbox-message.ts";
import { MALFORMED, outcomeFromWire } from "../regions/outbox-wire.ts";

const WALLET_TIMEOUT_MS = 2000;
/** Less than the sender's patience: what is not done by then is said to be not done. */
const ALL_TIMEOUT_MS = 4000;

/** Where outcomes go to. `isOrganization`: whether this region's book has it; throws when it cannot say. */
export type OutcomeServices = {
  readonly wallet: (orgId: string) => OutcomeWallet;
  readonly isOrganization: (orgId: string) => Promise<boolean>;
};

/**
 * Gives what `sender` tells of its requests to the wallets of this region, and answers item by item.
 * Duplicates and any order are harmless: a wallet takes an outcome once. One wallet that hangs costs
 * the others one of six places.
 */
export function takeOutcomes(
  items: readonly unknown[],
  sender: Region,
  services: OutcomeServices,
): Promise<readonly Delivery[]> {
  const untilMs = elapsedMs() + ALL_TIMEOUT_MS;
  const outcomes = items.map((value) => outcomeFromWire(value, sender));
  return eachReceiver(
    outcomes,
    (item) => item?.orgId ?? null,
    async (item): Promise<Delivery> => {
      if (item === null) return MALFORMED;
      const leftMs = untilMs - elapsedMs();
      if (leftMs <= 0) return { kind: "untried" };
      try {
        return await within(take(item, services), Math.min(leftMs, WALLET_TIMEOUT_MS));
      } catch (error) {
        return { kind: "failed", reason: reasonOf(error) };
      }
    },
  );
}

async function take(item: OutcomeItem, services: OutcomeServices): Promise<Delivery> {
  const delivery = await deliverOutcome(item, services.wallet);
  if (delivery.kind !== "failed" || delivery.reason !== "storage_unavailable") return delivery;
  // A wallet that was never made says the same as one that cannot be read, or was lost and will be made
  // again from the book: the book knows which of these there can be.
  if (await services.isOrganization(item.orgId)) return delivery;
  return { kind: "refused", reason: "unknown organization" };
}
