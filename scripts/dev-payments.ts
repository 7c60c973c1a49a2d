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
