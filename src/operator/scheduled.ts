import { configOf } from "../config.ts";
import { now } from "../lib/clock.ts";
import { objectsOf } from "../contracts/objects.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { outboxNames } from "../regions/outbox-schedule.ts";
import { forgetStale } from "../people/forgetting.store.ts";
import { resealSecrets } from "../webhooks/webhooks.store.ts";
import { sweep } from "./sweep.store.ts";

/**
 * What the hourly cron does: `sweep` over this region's wallets, deliveries and outboxes, whose depths become gauges,
 * what webhooks' secrets need while KEY_SECRETS are replaced, and what is kept of people for no longer.
 */
export async function runScheduled(env: Env): Promise<void> {
  const parsed = configOf(env);
  if (!parsed.ok) {
    logWarning("sweep_skipped", { reason: "misconfigured" });
    return;
  }
  const { peers, keySecrets } = parsed.config;
  try {
    await resealSecrets(env.DB, keySecrets);
  } catch (error) {
    logWarning("webhooks_not_resealed", { reason: reasonOf(error) });
  }
  try {
    await forgetStale(env.DB, now(env));
  } catch (error) {
    logWarning("people_not_forgotten", { reason: reasonOf(error) });
  }
  const names = outboxNames(peers.map(({ region }) => region));
  const objects = objectsOf(env);
  const { depths } = await sweep(env.DB, now(env), {
    ...objects,
    outboxes: names.map((name) => [name, objects.outbox(name)]),
  });
  try {
    await objects.metrics().setGauges(depths.series());
  } catch (error) {
    logWarning("metrics_not_taken", { reason: reasonOf(error) });
  }
}
