import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "./admin/transport.ts";
import type { Call } from "./admin/transport.ts";
import { serveStripe } from "./dev-stripe.ts";
import type { ServedStripe } from "./dev-stripe.ts";
import { isPortInUse } from "./ports.ts";
import { HOST } from "./region.ts";
import { REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

type Bindings = Readonly<Record<string, string>>;

/** The only key that the local payment provider accepts. */
const KEY = "sk_test_of_this_machine";
const NAMES = ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRETS", "STRIPE_BASE_URL"] as const;

export type LocalPayments = {
  readonly stripe: ServedStripe;
  /** Returns a region's payment variables. The developer's own variables take precedence. */
  readonly bindingsOf: (region: RegionName, others: Bindings) => Bindings;
  /** Reports whether a region with these bindings uses this payment provider. */
  readonly isOf: (bindings: Bindings) => boolean;
};

const secretOf = (region: RegionName): string => `whsec_local_${region}`;

/**
 * Serves the payment provider, on `port` if it is free, and sends webhooks to the regions' ports.
 */
export async function servePayments(
  directory: string,
  port: number,
  regions: Readonly<Record<RegionName, number>>,
): Promise<LocalPayments> {
  const stripe = await serveStripe({ directory, port: (await isPortInUse(port)) ? 0 : port });
  stripe.sendTo(
    REGION_NAMES.map((region) => ({
      url: `http://${HOST}:${regions[region]}/payments/stripe`,
      secrets: [secretOf(region)],
    })),
  );
  return {
    stripe,
    isOf: (bindings) => bindings["STRIPE_BASE_URL"] === stripe.url,
    bindingsOf: (region, others) => {
      const isForUs =
        others["SANDBOX"] === "on" && NAMES.every((name) => others[name] === undefined);
      if (!isForUs) return others;
      const [key, secrets, url] = NAMES;
      return { ...others, [key]: KEY, [secrets]: secretOf(region), [url]: stripe.url };
    },
  };
}

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
