import type { Context, Next } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { elapsedMs } from "../lib/clock.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { success } from "../lib/failure.ts";
import { Timers } from "../lib/timers.ts";
import { startAuthentication } from "./authenticate.ts";
import { vouchedFor } from "./forwarded.ts";

/**
 * Starts authentication of every `/v1` request and sets `admission`. What costs money awaits it
 * itself, so that its body is read meanwhile; everything else passes `requireAdmission`.
 */
export async function startAdmission(c: Context<AppEnv>, next: Next): Promise<void> {
  const vouched = vouchedFor(c.req.raw);
  if (vouched !== undefined) {
    c.set("admitted", vouched);
    c.set("admissionMs", 0);
    c.set("admission", Promise.resolve(success(vouched)));
    c.set("timers", new Timers());
    return next();
  }
  const config = c.get("config");
  const limiters = inJurisdiction(c.env.KEY_LIMITER, config.jurisdiction);
  const timers = new Timers();
  c.set("timers", timers);
  const startedMs = elapsedMs();
  const admission = startAuthentication({
    authorization: c.req.header("authorization") ?? null,
    keySecrets: config.keySecrets,
    region: config.region,
    after: timers.after,
    limiter: (keyHash) => limiters.getByName(keyHash),
  }).then((result) => {
    if (result.ok) c.set("admitted", result.value);
    c.set("admissionMs", elapsedMs() - startedMs);
    return result;
  });
  c.set("admission", admission);
  await next();
}

/** Lets only admitted requests through, with `admitted` set. */
export async function requireAdmission(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const admission = await c.get("admission");
  c.get("timers").close();
  if (!admission.ok) return fail(c, admission.failure);
  await next();
  return undefined;
}
