import { serveStripe } from "./dev-stripe.ts";
import type { ServedStripe } from "./dev-stripe.ts";
import { isPortInUse } from "./ports.ts";
import { HOST } from "./region.ts";
import { REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

type Bindings = Readonly<Record<string, string>>;

/** The only key that this machine's payment provider accepts. */
const KEY = "sk_test_of_this_machine";
const NAMES = ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRETS", "STRIPE_BASE_URL"] as const;

/** The payment provider that runs next to the regions. */
export type LocalPayments = {
  readonly stripe: ServedStripe;
  /** Returns a region's variables for selling credits. A developer's own key comes first. */
  readonly bindingsOf: (region: RegionName, others: Bindings) => Bindings;
  /** Whether it is the one that a region with these bindings pays by. */
  readonly isOf: (bindings: Bindings) => boolean;
};

const secretOf = (region: RegionName): string => `whsec_local_${region}`;

/** Serves it, on this port if that is free, and sends its webhooks to the regions on theirs. */
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
