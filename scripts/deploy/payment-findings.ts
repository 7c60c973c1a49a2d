import { error, note, findingsThatHold, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import type { Settings } from "./settings.ts";

const KEY = "STRIPE_SECRET_KEY";
const SECRETS = "STRIPE_WEBHOOK_SECRETS";
const TAX = "STRIPE_TAX";

/**
 * Reports incomplete payment settings, and facts that only a person can check, such as a key's
 * mode.
 */
export function paymentFindings({ env, config }: Settings, set: readonly string[]): Finding[] {
  const [hasKey, hasSecrets] = [set.includes(KEY), set.includes(SECRETS)];
  const isSandbox = config.vars["SANDBOX"] === "on" || set.includes("SANDBOX");
  const mode = isSandbox ? "test" : "live";
  const put = (name: string): string => `npx wrangler secret put ${name} --env ${env}`;
  return findingsThatHold(
    [
      hasKey && !hasSecrets,
      error(
        SECRETS,
        `is not set, but ${KEY} is`,
        `${put(SECRETS)}, with the secret of this region's endpoint.`,
      ),
    ],
    [
      hasSecrets && !hasKey,
      warning(
        SECRETS,
        `is set, but ${KEY} is not, so no credits are sold`,
        `${put(KEY)}, or delete it.`,
      ),
    ],
    [
      hasKey && config.vars[TAX] === undefined,
      warning(
        TAX,
        "is not set, so no tax is added to purchases",
        `Ask a tax adviser, then set it to on or off in [env.${env}] vars.`,
      ),
    ],
    [
      !hasKey && config.vars[TAX] === "on",
      warning(
        TAX,
        `is on, but ${KEY} is not set, so no credits are sold`,
        `${put(KEY)}, or set it to off.`,
      ),
    ],
    [
      hasKey,
      note(
        KEY,
        `must be a key of Stripe's ${mode} mode, and this check can't read it`,
        `It begins with rk_${mode}_ or sk_${mode}_. With another key, the Worker returns 503 for every request. Prefer a restricted key (rk_) for each region.`,
      ),
    ],
    [
      hasKey && hasSecrets,
      note(
        SECRETS,
        "must be the secret of this region's own endpoint, and this check can't read it",
        "Test it: in Stripe's Dashboard, the endpoint's newest event has the response 200. With another endpoint's secret, it has 400.",
      ),
    ],
  );
}
