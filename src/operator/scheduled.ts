import { configOf } from "../shared/config/config.ts";
import type { Config, PaymentsConfig } from "../shared/config/config.ts";
import { now } from "../shared/clock.ts";
import { SYSTEM_ACTOR } from "../shared/event.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import { mapConcurrently } from "../shared/map-concurrently.ts";
import type { Result } from "../shared/failure.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { withTimeout } from "../shared/timers.ts";
import type { MetricValues, WatchedJob } from "../shared/contracts/metrics.ts";
import { createEventDispatchStore, wakePaymentsObjects } from "../money/payments/payments.store.ts";
import { dispatchMissedEvents } from "../money/payments/stripe-events.ts";
import { createStripeClient } from "../money/payments/stripe.ts";
import { allOutboxNames } from "../regions/outbox-schedule.ts";
import {
  removeOrganization,
  notifyWalletOfClosing,
} from "../accounts/people/close-organization.ts";
import {
  listOrganizationsToRemove,
  listRestorableOrganizations,
} from "../accounts/people/closing.store.ts";
import { recheckCompanyDomains } from "../accounts/people/company.ts";
import { reencryptIssuerSecrets } from "../accounts/people/company-issuer.ts";
import { eraseStalePeople } from "../accounts/people/erasure.store.ts";
import { createMailSender } from "../accounts/people/mail.ts";
import { reencryptWebhookSecrets } from "../events/webhooks/webhooks.store.ts";
import { CRON_SCHEDULES } from "./crons.ts";
import { outboxGauges } from "./sweep-metrics.ts";
import { sweepHourly, continueSweep } from "./sweep.store.ts";
import { createKeyServices } from "../accounts/keys/revocation.ts";

export function runCron(cron: string, env: Env): Promise<void> {
  if (cron === CRON_SCHEDULES.round) return runRound(env);
  return cron === CRON_SCHEDULES.watch ? runWatch(env) : runHourlyJobs(env);
}

async function runWatch(env: Env): Promise<void> {
  await Promise.all([measureOutboxes(env), runPaymentsSweep(env)]);
}

const DEPTH_TIMEOUT_MS = 5000;
const CONCURRENT_MAX = 6;

async function measureOutboxes(env: Env): Promise<void> {
  const parsed = configOf(env);
  if (!parsed.ok) return;
  const objects = objectsOf(env);
  const names = allOutboxNames(parsed.config.peers.map(({ region }) => region));
  const measured = await mapConcurrently(CONCURRENT_MAX, names, async (name) => {
    const depth = await withTimeout(objects.outbox(name).depth(), DEPTH_TIMEOUT_MS).catch(
      () => null,
    );
    return { name, depth };
  });
  await setGauges(env, outboxGauges(measured), "outboxes");
}

/**
 * Sends Stripe's new events to payments objects, and wakes objects with due work. Records success
 * if Stripe listed its events, or if payments are off.
 */
export async function runPaymentsSweep(env: Env): Promise<void> {
  const parsed = configOf(env);
  if (!parsed.ok) return;
  try {
    if (parsed.config.payments !== null) await sweepPayments(env, parsed.config.payments);
  } catch (error) {
    return logWarning("payments_not_swept", { reason: errorMessageOf(error) });
  }
  await setGauges(env, {}, "payments");
}

async function sweepPayments(env: Env, payments: PaymentsConfig): Promise<void> {
  const stripe = createStripeClient(payments);
  const { isLive } = payments;
  const sweepTargets = {
    store: createEventDispatchStore(env.DB),
    payments: objectsOf(env).payments,
    stripe,
    isLive,
  };
  const listed = await dispatchMissedEvents(sweepTargets, now(env));
  await wakePaymentsObjects(env.DB, objectsOf(env));
  if (listed === null) throw new Error("Stripe did not list its events");
}

export async function runHourlyJobs(env: Env): Promise<void> {
  const parsed = configOf(env);
  if (!parsed.ok) {
    logWarning("sweep_skipped", { reason: "misconfigured" });
    return;
  }
  const { peers, keySecrets } = parsed.config;
  try {
    await reencryptWebhookSecrets(env.DB, keySecrets);
    await reencryptIssuerSecrets(env.DB, keySecrets);
  } catch (error) {
    logWarning("webhooks_not_resealed", { reason: errorMessageOf(error) });
  }
  try {
    await eraseStalePeople(env.DB, now(env));
    await removeClosedOrganizations(env, parsed.config);
    const pendingEmails: Promise<unknown>[] = [];
    await recheckCompanyDomains(
      env.DB,
      now(env),
      createMailSender(parsed.config.mail, (work) => void pendingEmails.push(work)),
    );
    await Promise.all(pendingEmails);
  } catch (error) {
    logWarning("people_not_swept", { reason: errorMessageOf(error) });
  }
  const objects = objectsOf(env);
  const outboxes = allOutboxNames(peers.map(({ region }) => region)).map(objects.outbox);
  const found = await sweepHourly(env.DB, () => now(env), { ...objects, outboxes });
  if (found !== null) await setGauges(env, found.series());
}

/** Tells wallets again which organizations are closed. Removes those closed over 7 days ago. */
async function removeClosedOrganizations(env: Env, config: Config): Promise<void> {
  const services = createKeyServices(env, config, SYSTEM_ACTOR);
  await forEachOrganization(
    await listRestorableOrganizations(env.DB),
    "organization_not_closed", // logged if the wallet wasn't notified
    (orgId) => notifyWalletOfClosing(services, orgId),
  );
  await forEachOrganization(
    await listOrganizationsToRemove(env.DB, services.now),
    "organization_not_removed",
    (orgId) => removeOrganization(services, orgId),
  );
}

async function forEachOrganization(
  ids: readonly string[],
  warning: string,
  act: (orgId: string) => Promise<Result<unknown>>,
): Promise<void> {
  for (const orgId of ids) {
    try {
      const result = await act(orgId);
      if (!result.ok) logWarning(warning, { org_id: orgId });
    } catch (error) {
      logWarning(warning, { org_id: orgId, reason: errorMessageOf(error) });
    }
  }
}

async function runRound(env: Env): Promise<void> {
  const depths = await continueSweep(env.DB, () => now(env), objectsOf(env));
  if (depths !== null) await setGauges(env, depths.series());
}

async function setGauges(env: Env, series: MetricValues, job?: WatchedJob): Promise<void> {
  try {
    await objectsOf(env).metrics().setGauges(series, job);
  } catch (error) {
    logWarning("metrics_not_taken", { reason: errorMessageOf(error) });
  }
}
