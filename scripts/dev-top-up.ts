import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "./admin/transport.ts";
import type { Call } from "./admin/transport.ts";
import type { ServedStripe } from "./dev-stripe.ts";

const PATIENCE_MS = 60_000;

type Purchase = { readonly id: string; readonly state: string; readonly url: string | null };

/**
 * Buys credits as the owner, saves the card and turns on automatic top-up. Does nothing if the
 * organization has a purchase.
 */
export async function enableAutoTopUp(
  base: string,
  { org_id, owner_key }: { readonly org_id: string; readonly owner_key: string },
  { fake }: ServedStripe,
): Promise<void> {
  const call = <T>(method: Call["method"], path: string, body?: object): Promise<T> => {
    const sent = { ...(body !== undefined && { body }), idempotencyKey: randomUUID() };
    return ask({ url: new URL("/v1", base).href, token: owner_key }, { method, path, ...sent });
  };
  const { purchases } = await call<{ purchases: Purchase[] }>("GET", "/credits/purchases");
  if (purchases.length > 0) return;
  const wanted = { amount_dollars: 25, method: "checkout", save_card: true };
  const { id } = await call<Purchase>("POST", "/credits/purchases", wanted);
  const reach = async (isThere: (purchase: Purchase) => boolean): Promise<Purchase> => {
    const end = Date.now() + PATIENCE_MS;
    while (Date.now() < end) {
      const purchase = await call<Purchase>("GET", `/credits/purchases/${id}`);
      if (isThere(purchase)) return purchase;
      await sleep(100);
    }
    throw new Error(`the demo's purchase ${id} does not move`);
  };
  const { url } = await reach((purchase) => purchase.url !== null);
  fake.person.pay(new URL(url ?? base).pathname.split("/").at(-1) ?? "");
  await reach(({ state }) => state === "credited");
  await call("PATCH", `/orgs/${org_id}/settings`, {
    auto_top_up: { below_dollars: 5, amount_dollars: 25, most_per_month_dollars: 100 },
  });
}
