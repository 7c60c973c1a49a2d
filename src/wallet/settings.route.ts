import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { readFields } from "../http/read-fields.ts";
import { dollarsOrNull, fraction, shownDollars } from "./dollars.ts";
import { askOwnWallet } from "./own-wallet.route.ts";
import type { SettingsRecord } from "./wallet-contract.ts";

const settingsBody = z.object({
  default_user_monthly_quota_dollars: z.optional(dollarsOrNull),
  default_user_daily_quota_dollars: z.optional(dollarsOrNull),
  default_alert_threshold: z.optional(fraction),
  low_balance_threshold_dollars: z.optional(dollarsOrNull),
});

/** GET /v1/orgs/{id}/settings: the four settings, always current. */
export async function readSettingsRoute(c: Context<AppEnv>): Promise<Response> {
  const answer = await askOwnWallet(c, (wallet) => wallet.readSettings());
  return answer.ok ? c.json(settingsView(answer.value)) : fail(c, answer.failure);
}

/** PATCH /v1/orgs/{id}/settings: changes what is given, for end users seen later; all four settings. */
export async function patchSettingsRoute(c: Context<AppEnv>): Promise<Response> {
  const fields = await readFields(c, settingsBody);
  if (!fields.ok) return fail(c, fields.failure);
  const given = fields.value;
  const change = {
    defaultUserMonthlyQuotaMicro: given.default_user_monthly_quota_dollars,
    defaultUserDailyQuotaMicro: given.default_user_daily_quota_dollars,
    defaultAlertThreshold: given.default_alert_threshold,
    lowBalanceThresholdMicro: given.low_balance_threshold_dollars,
  };
  const answer = await askOwnWallet(c, (wallet) =>
    wallet.patchSettings(change, c.var.admitted.caller.keyHash),
  );
  return answer.ok ? c.json(settingsView(answer.value)) : fail(c, answer.failure);
}

/** The organisation settings of the interface, 2.8. */
function settingsView(settings: SettingsRecord): Readonly<Record<string, unknown>> {
  return {
    default_user_monthly_quota_dollars: shownDollars(settings.defaultUserMonthlyQuotaMicro),
    default_user_daily_quota_dollars: shownDollars(settings.defaultUserDailyQuotaMicro),
    default_alert_threshold: settings.defaultAlertThreshold,
    low_balance_threshold_dollars: shownDollars(settings.lowBalanceThresholdMicro),
  };
}
