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
        `is not set, and ${KEY} is`,
        `${put(SECRETS)}, with this region's endpoint's.`,
      ),
    ],
    [
      hasSecrets && !hasKey,
      warning(
        SECRETS,
        `is set, and ${KEY} is not: no credits are sold`,
        `${put(KEY)}, or delete it.`,
      ),
    ],
    [
      hasKey && config.vars[TAX] === undefined,
      warning(
        TAX,
        "is not said, so no tax is added to what is sold",
        `Set it to on or off in [env.${env}] vars, as your adviser says.`,
      ),
    ],
    [
      !hasKey && config.vars[TAX] === "on",
      warning(TAX, `is on, and ${KEY} is not set: no credits are sold`, `${put(KEY)}, or off.`),
    ],
    [
      hasKey,
      note(
        KEY,
        `must be of the ${mode} mode here, and cannot be read back to look`,
        `It begins with rk_${mode}_ or sk_${mode}_; with another the Worker refuses to serve. Prefer a restricted one (rk_), and one for each region.`,
      ),
    ],
    [
      hasKey && hasSecrets,
      note(
        SECRETS,
        "must be of this region's own endpoint, and cannot be read back to look",
        "Proof: in Stripe's Dashboard the endpoint's newest event has the answer 200. With another's secret it is a 400.",
      ),
    ],
  );
}
