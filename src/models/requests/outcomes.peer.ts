import type { Context } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { errorMessageOf } from "../../shared/log.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import { withTimeout } from "../../shared/timers.ts";
import { findOrganization } from "../../accounts/organizations/organizations.store.ts";
import { deliverByReceiver } from "../../regions/outbox-delivery.ts";
import { deliverOutcome } from "../../regions/outbox-message.ts";
import type { DeliveryResult } from "../../regions/outbox-message.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import {
  parsePeerItems,
  MALFORMED_DELIVERY,
  outcomeFromJson,
  deliveryToJson,
} from "../../regions/outbox-format.ts";
import type { CallsOf } from "../../shared/contracts/objects.ts";
import type { Region } from "../../shared/regions.ts";

/**
 * Handles POST /internal/v1/outcomes. Applies at most 100 outcomes of requests that another region
 * served. Returns 200 with a result for each, in order.
 */
export async function outcomesPeer(c: Context<AppEnv>): Promise<Response> {
  const items = parsePeerItems(c.var.peerBody);
  if (!items.ok) return fail(c, items.failure);
  const deliveries = await applyOutcomes(items.value, c.var.peer, {
    wallet: objectsOf(c.env).wallet,
    isOrganization: async (orgId) => (await findOrganization(c.env.DB, orgId)) !== null,
    after: c.var.timers.after,
  });
  const results = deliveries.map((delivery, i) =>
    deliveryToJson("hold_id", items.value[i], delivery),
  );
  return c.json({ ok: true, results });
}

const WALLET_TIMEOUT_MS = 2000;
/**
 * Maximum ms for all outcomes, less than the sender's timeout. Later outcomes are reported as
 * untried.
 */
const ALL_TIMEOUT_MS = 4000;

type OutcomeServices = CallsOf<"wallet", "settle" | "void"> & {
  readonly isOrganization: (orgId: string) => Promise<boolean>;
  readonly after?: TimerFunction;
};

/**
 * Applies another region's outcomes. A wallet applies each once, so duplicates and order don't
 * matter.
 */
export function applyOutcomes(
  items: readonly unknown[],
  sender: Region,
  services: OutcomeServices,
): Promise<readonly DeliveryResult[]> {
  const untilMs = elapsedMs() + ALL_TIMEOUT_MS;
  const outcomes = items.map((value) => outcomeFromJson(value, sender));
  return deliverByReceiver(
    outcomes,
    (item) => item?.orgId ?? null,
    async (item): Promise<DeliveryResult> => {
      if (item === null) return MALFORMED_DELIVERY;
      const leftMs = untilMs - elapsedMs();
      if (leftMs <= 0) return { kind: "untried" };
      try {
        const limitMs = Math.min(leftMs, WALLET_TIMEOUT_MS);
        return await withTimeout(applyOutcome(item, services), limitMs, services.after);
      } catch (error) {
        return { kind: "failed", reason: errorMessageOf(error) };
      }
    },
  );
}

async function applyOutcome(item: OutcomeItem, services: OutcomeServices): Promise<DeliveryResult> {
  const delivery = await deliverOutcome(item, services.wallet);
  if (delivery.kind !== "failed" || delivery.reason !== "storage_unavailable") return delivery;
  // A wallet that never existed responds like one that lost its data. Only D1 distinguishes them.
  if (await services.isOrganization(item.orgId)) return delivery;
  return { kind: "refused", reason: "unknown organization" };
}
