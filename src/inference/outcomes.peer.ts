import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { findOrganization } from "../organizations/organizations.store.ts";
import { itemsIn, resultToWire } from "../regions/outbox-wire.ts";
import { takeOutcomes } from "./take-outcomes.ts";

/**
 * `POST /internal/v1/outcomes`: what requests that a peer served came to. 200 with a result for each
 * item, in their order; 400 when there is no list of at most 100 items.
 */
export async function outcomesPeer(c: Context<AppEnv>): Promise<Response> {
  const items = itemsIn(c.var.peerBody);
  if (!items.ok) return fail(c, items.failure);
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  const deliveries = await takeOutcomes(items.value, c.var.peer, {
    wallet: (orgId) => wallets.getByName(orgId),
    isOrganization: async (orgId) => (await findOrganization(c.env.DB, orgId)) !== null,
  });
  const results = deliveries.map((delivery, i) =>
    resultToWire("hold_id", items.value[i], delivery),
  );
  return c.json({ ok: true, results });
}
