import { configOf } from "../shared/config/config.ts";
import { now } from "../shared/clock.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import { logWarning, reasonOf } from "../shared/log.ts";
import { eventBook } from "../money/payments/customers.store.ts";
import { pokePayers } from "../money/payments/payers.store.ts";
import { sweepEvents } from "../money/payments/stripe-events.ts";
import { stripeOf } from "../money/payments/stripe.ts";
import { outboxNames } from "../regions/outbox-schedule.ts";
import { checkDomains } from "../accounts/people/company.ts";
import { resealIssuers } from "../accounts/people/company-issuer.ts";
import { forgetStale } from "../accounts/people/forgetting.store.ts";
import { mailer } from "../accounts/people/mail.ts";
import { resealSecrets } from "../events/webhooks/webhooks.store.ts";
import { sweep } from "./sweep.store.ts";

/** Asks Stripe what its messages may have missed; every other cron is the hourly one. */
const PAYMENTS_CRON = "*/15 * * * *";

/** What a cron of wrangler.toml does. */
export function runCron(cron: string, env: Env): Promise<void> {
  return cron === PAYMENTS_CRON ? runPaymentsSweep(env) : runScheduled(env);
}

/**
 * Lists Stripe's events since the last time, for whoever they concern here, and has organisations' payments look at
 * what is due; nothing where nothing is sold.
 */
export async function runPaymentsSweep(env: Env): Promise<void> {
  const parsed = configOf(env);
  const payments = parsed.ok ? parsed.config.payments : null;
  if (payments === null) return;
  const stripe = stripeOf(payments);
  const { isLive } = payments;
  try {
    const to = { book: eventBook(env.DB), payments: objectsOf(env).payments, stripe, isLive };
    const listed = await sweepEvents(to, now(env));
    const reason = "Stripe did not list its events";
    if (listed === null) logWarning("payments_not_swept", { reason });
    await pokePayers(env.DB, objectsOf(env));
  } catch (error) {
    logWarning("payments_not_swept", { reason: reasonOf(error) });
  }
}

/**
 * What the hourly cron does: `sweep` over this region's wallets, deliveries and outboxes, whose depths become gauges,
 * what webhooks' secrets need while KEY_SECRETS are replaced, what is kept of people for no longer, and the proofs of companies' domains.
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
    await resealIssuers(env.DB, keySecrets);
  } catch (error) {
    logWarning("webhooks_not_resealed", { reason: reasonOf(error) });
  }
  try {
    await forgetStale(env.DB, now(env));
    const sending: Promise<unknown>[] = [];
    await checkDomains(
      env.DB,
      now(env),
      mailer(parsed.config.mail, (work) => void sending.push(work)),
    );
    await Promise.all(sending);
  } catch (error) {
    logWarning("people_not_swept", { reason: reasonOf(error) });
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
