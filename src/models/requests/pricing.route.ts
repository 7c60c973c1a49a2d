import type { Context } from "hono";
import { PriceListCache, createSignedPriceCopies } from "../catalog/price-list-cache.ts";
import type { Pricing, PricingLookup } from "../catalog/price-lists.ts";
import type { PriceCopies } from "../catalog/price-list-cache.ts";
import { readPriceRows } from "../catalog/prices.store.ts";
import type { CallerCatalog } from "../catalog/catalog.ts";
import type { Config } from "../../shared/config/config.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import { getDeployment } from "./deployment.ts";
import { formatRouteName } from "../routing/route-health.ts";
import { now } from "../../shared/clock.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";

export function getPricingLookup(c: Context<AppEnv>): PricingLookup {
  const { env, executionCtx } = c;
  const config = c.get("config");
  const cache = Isolate.of(config).get(makePriceListCache);
  const reader = {
    now: () => now(env),
    read: (list: string, nowMs: number) => readPriceRows(env.DB, list, nowMs),
    waitUntil: (work: Promise<unknown>) => executionCtx.waitUntil(work),
    copies: Isolate.of(config).get(makePriceCopies),
  };
  const priced = async (list: string | null, at: number): Promise<Result<Pricing>> => {
    const lists = await cache.listsOf(list, reader);
    return lists.ok ? success({ list, at, lists: lists.value }) : lists;
  };
  return {
    current: (orgId, at) => priced(cache.listNameOf(orgId), at),
    corrected: (orgId, list, at) => {
      cache.setListName(orgId, list);
      return priced(list, at);
    },
  };
}

export async function loadCallerCatalog(c: Context<AppEnv>): Promise<Result<CallerCatalog>> {
  const at = now(c.env);
  const { admitted, config } = c.var;
  const { caller, policies, priceList = null } = admitted;
  const pricing = await getPricingLookup(c).corrected(caller.orgId, priceList, at);
  if (!pricing.ok) return pricing;
  const { catalogAt, catalogsAfter, health } = getDeployment(config);
  const cooldowns = health.unavailableRoutes(at).filter(({ untilMs }) => untilMs > at);
  const coolingRoutes = new Set(cooldowns.map(({ route }) => route));
  return success({
    catalog: catalogAt(at),
    pricing: pricing.value,
    later: catalogsAfter(at),
    isInCooldown: (route) => coolingRoutes.has(formatRouteName(route)),
    ...(policies !== undefined && { policies }),
  });
}

/**
 * Returns the region's cache of signed price lists. A copy includes all announced prices, and
 * expires before any newer price can apply.
 */
function makePriceCopies({ keySecrets, numbers, region }: Config): PriceCopies | null {
  const [newest] = keySecrets;
  if (newest === undefined) return null;
  const { secret } = newest;
  return createSignedPriceCopies(caches.default, { region, secret, keptS: numbers.PRICE_LEAD_S });
}

function makePriceListCache(config: Config): PriceListCache {
  return new PriceListCache(config);
}
