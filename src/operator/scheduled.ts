import { configOf } from "../config.ts";
import { now } from "../lib/clock.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { REGION_METRICS } from "../metrics/series.ts";
import { outboxNames } from "../regions/outbox-schedule.ts";
import { resealSecrets } from "../webhooks/webhooks.store.ts";
import { sweep } from "./sweep.store.ts";

/**
 * What the hourly cron does: `sweep` over this region's wallets, deliveries and outboxes, whose depths become gauges,
 * and what webhooks' secrets need while KEY_SECRETS are replaced.
 */
export async function runScheduled(env: Env): Promise<void> {
  const parsed = configOf(env);
  if (!parsed.ok) {
    logWarning("sweep_skipped", { reason: "misconfigured" });
    return;
  }
  const { jurisdiction, peers, keySecrets } = parsed.config;
  try {
    await resealSecrets(env.DB, keySecrets);
  } catch (error) {
    logWarning("webhooks_not_resealed", { reason: reasonOf(error) });
  }
  const names = outboxNames(peers.map(({ region }) => region));
  const wallets = inJurisdiction(env.WALLET, jurisdiction);
  const deliveries = inJurisdiction(env.WEBHOOK_DELIVERIES, jurisdiction);
  const outboxes = inJurisdiction(env.REGION_OUTBOX, jurisdiction);
  const { depths } = await sweep(env.DB, now(env), {
    wallet: (orgId) => wallets.getByName(orgId),
    deliveries: (orgId) => deliveries.getByName(orgId),
    outboxes: names.map((name) => ({
      name,
      poke: () => outboxes.getByName(name).poke(),
      depth: () => outboxes.getByName(name).depth(),
    })),
  });
  const metrics = inJurisdiction(env.REGION_METRICS, jurisdiction).getByName(REGION_METRICS);
  try {
    await metrics.setGauges(depths.series());
  } catch (error) {
    logWarning("metrics_not_taken", { reason: reasonOf(error) });
  }
}
