import * as z from "zod/mini";
import { actorOfCaller, createRequestCredential } from "../../../shared/caller.ts";
import type { RequestCredential, Role } from "../../../shared/caller.ts";
import type { AppContext } from "../../../shared/http/context.ts";
import { created, readBodyFields } from "../../../shared/http/endpoint.ts";
import { singleValueSchema, pageQuerySchema, parseQuery } from "../../../shared/http/parse-body.ts";
import { assert } from "../../../shared/assert.ts";
import {
  BUDGETS_MAX,
  budgetsSchema,
  budgetStatusView,
  budgetsFromFields,
} from "../../../shared/budgets.ts";
import { timestamp } from "../../../shared/clock.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { objectsOf } from "../../../shared/contracts/objects.ts";
import {
  DOLLARS_MAX,
  dollarsOf,
  micros,
  microsOfDollars,
  MICROS_PER_DOLLAR,
} from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { callObject } from "../../../shared/reach-object.ts";
import { policySchema } from "../../../shared/policy.ts";
import { concurrencySchema, dollarsSchema } from "../../../shared/key-terms.ts";
import { STORED_RESPONSE_HOURS_MAX } from "../../../shared/contracts/settings.ts";
import type { SettingsWithBudgets } from "../../../shared/contracts/settings.ts";
import { autoTopUpView } from "../../../shared/contracts/payments.ts";
import type { AutoTopUpSettings } from "../../../shared/contracts/payments.ts";
import type { EndUserUpdate, EndUserRecord } from "../../../shared/contracts/end-users.ts";
import { tagKeysSchema } from "../../../shared/tags.ts";
import { callWalletOfCaller } from "./reads.route.ts";

const dollars = z.pipe(
  dollarsSchema,
  z.transform((amount): Micros => {
    const exact = microsOfDollars(amount);
    assert(exact !== null, "the amount was checked");
    return exact;
  }),
);

export const nullableDollarsSchema = z.nullable(dollars);

export const fractionSchema = z.number().check(z.minimum(0), z.maximum(1));

function toDollars(amount: Micros | null): number | null {
  return amount === null ? null : dollarsOf(amount);
}

const limitFields = {
  monthly_quota_dollars: z.optional(nullableDollarsSchema),
  daily_quota_dollars: z.optional(nullableDollarsSchema),
  alert_threshold: z.optional(fractionSchema),
  budgets: z.optional(budgetsSchema(BUDGETS_MAX)),
};
const READ_ONLY_FIELDS = ["id", "monthly_spend_dollars", "daily_spend_dollars", "created_at"];
export const endUserChangeSchema = z.object(limitFields);
export const putEndUserSchema = z.object({ external_id: z.string(), ...limitFields });

export async function putEndUserRoute(c: AppContext) {
  const fields = await readBodyFields(c, putEndUserSchema, READ_ONLY_FIELDS);
  if (!fields.ok) return fields;
  const { external_id: externalId, ...given } = fields.value;
  const answer = await callWalletOfCaller(c, (wallet) =>
    wallet.putEndUser(externalId, endUserUpdateOf(c, given), credentialOf(c)),
  );
  if (!answer.ok) return answer;
  const { created: isNew, endUser } = answer.value;
  return isNew ? created(endUserView(endUser)) : success(endUserView(endUser));
}

export const endUsersQuerySchema = z.extend(pageQuerySchema, {
  after: z.optional(singleValueSchema),
});

export async function listEndUsersRoute(c: AppContext) {
  const page = parseQuery(endUsersQuerySchema, c.req.url);
  if (!page.ok) return page;
  const { limit, offset, after } = page.value;
  const answer = await callWalletOfCaller(c, (wallet) => wallet.listEndUsers(limit, offset, after));
  if (!answer.ok) return answer;
  const { endUsers, total, nextAfter } = answer.value;
  const users = endUsers.map(endUserView);
  return success({ users, total, limit, offset, next_after: nextAfter });
}

export async function readEndUserRoute(c: AppContext) {
  const answer = await callWalletOfCaller(c, (wallet) => wallet.readEndUser(externalIdOf(c)));
  return answer.ok ? success(endUserView(answer.value)) : answer;
}

export async function patchEndUserRoute(c: AppContext) {
  const fields = await readBodyFields(c, endUserChangeSchema, ["external_id", ...READ_ONLY_FIELDS]);
  if (!fields.ok) return fields;
  const change = endUserUpdateOf(c, fields.value);
  const answer = await callWalletOfCaller(c, (wallet) =>
    wallet.patchEndUser(externalIdOf(c), change, credentialOf(c)),
  );
  return answer.ok ? success(endUserView(answer.value)) : answer;
}

export async function deleteEndUserRoute(c: AppContext) {
  const externalId = externalIdOf(c);
  let attempts = 0;
  const answer = await callWalletOfCaller(c, (wallet) => {
    attempts++;
    return wallet.deleteEndUser(externalId, credentialOf(c));
  });
  const isGone = attempts > 1 && !answer.ok && answer.failure.kind === "not_found";
  if (!answer.ok && !isGone) return answer;
  return success({ external_id: externalId, deleted: true });
}

function credentialOf(c: AppContext): RequestCredential {
  const { keyHash, shown } = c.var.admitted.caller;
  return createRequestCredential(keyHash, shown);
}

function externalIdOf(c: AppContext): string {
  return c.req.param("external_id") ?? "";
}

function endUserUpdateOf(c: AppContext, given: z.infer<typeof endUserChangeSchema>): EndUserUpdate {
  return {
    actor: actorOfCaller(c.var.admitted.caller),
    monthlyQuotaMicro: given.monthly_quota_dollars,
    dailyQuotaMicro: given.daily_quota_dollars,
    alertThreshold: given.alert_threshold,
    budgets: given.budgets === undefined ? undefined : budgetsFromFields(given.budgets),
  };
}

function endUserView(endUser: EndUserRecord) {
  return {
    id: endUser.id,
    external_id: endUser.externalId,
    monthly_quota_dollars: toDollars(endUser.monthlyQuotaMicro),
    daily_quota_dollars: toDollars(endUser.dailyQuotaMicro),
    alert_threshold: endUser.alertThreshold,
    monthly_spend_dollars: dollarsOf(endUser.monthlySpendMicro),
    daily_spend_dollars: dollarsOf(endUser.dailySpendMicro),
    budgets: endUser.budgets.map(budgetStatusView),
    created_at: timestamp(endUser.createdAt),
  };
}

const keepHours = z.int().check(z.minimum(0), z.maximum(STORED_RESPONSE_HOURS_MAX));

const wholeDollars = z
  .int("must be a whole number of dollars")
  .check(z.minimum(1), z.maximum(DOLLARS_MAX));

const autoTopUp = z.pipe(
  z
    .strictObject({
      below_dollars: dollars,
      amount_dollars: wholeDollars,
      most_per_month_dollars: wholeDollars,
    })
    .check(
      z.refine(
        ({ amount_dollars: amount, most_per_month_dollars: most }) => most >= amount,
        "must have most_per_month_dollars of at least amount_dollars",
      ),
    ),
  z.transform((given): AutoTopUpSettings => ({
    belowMicro: given.below_dollars,
    amountMicro: micros(given.amount_dollars * MICROS_PER_DOLLAR),
    mostPerMonthMicro: micros(given.most_per_month_dollars * MICROS_PER_DOLLAR),
  })),
);

export const settingsChangeSchema = z.object({
  default_user_monthly_quota_dollars: z.optional(nullableDollarsSchema),
  default_user_daily_quota_dollars: z.optional(nullableDollarsSchema),
  default_alert_threshold: z.optional(fractionSchema),
  low_balance_threshold_dollars: z.optional(nullableDollarsSchema),
  keep_responses_hours: z.optional(keepHours),
  auto_top_up: z.optional(z.nullable(autoTopUp)),
  tag_keys: z.optional(tagKeysSchema),
  budgets: z.optional(budgetsSchema(BUDGETS_MAX)),
  policy: z.optional(z.nullable(policySchema)),
  max_concurrent: z.optional(z.nullable(concurrencySchema)),
});

const SETTINGS_READ_ONLY: readonly string[] = ["operator_policy"];

export async function readSettingsRoute(c: AppContext) {
  const answer = await callWalletOfCaller(c, (wallet) => wallet.readSettings());
  return answer.ok ? success(settingsView(answer.value)) : answer;
}

export async function patchSettingsRoute(c: AppContext) {
  const fields = await readBodyFields(c, settingsChangeSchema, SETTINGS_READ_ONLY);
  if (!fields.ok) return fields;
  const given = fields.value;
  const hours = given.keep_responses_hours;
  const may = hours === undefined ? success(null) : await checkKeepHours(c, hours);
  if (!may.ok) return may;
  if (given.policy !== undefined && !SETTINGS_ROLES.includes(c.var.member.role)) {
    return refuse({ kind: "role_required", roles: SETTINGS_ROLES });
  }
  const refused = refuseTopUp(c, given.auto_top_up ?? null);
  if (refused !== null) return refused;
  const change = {
    autoTopUp: given.auto_top_up,
    policy: given.policy,
    maxConcurrent: given.max_concurrent,
    defaultUserMonthlyQuotaMicro: given.default_user_monthly_quota_dollars,
    defaultUserDailyQuotaMicro: given.default_user_daily_quota_dollars,
    defaultAlertThreshold: given.default_alert_threshold,
    lowBalanceThresholdMicro: given.low_balance_threshold_dollars,
    keepResponsesHours: given.keep_responses_hours,
    tagKeys: given.tag_keys,
    budgets: given.budgets === undefined ? undefined : budgetsFromFields(given.budgets),
  };
  const actor = actorOfCaller(c.var.admitted.caller);
  const answer = await callWalletOfCaller(c, (wallet) =>
    wallet.patchSettings(change, credentialOf(c), actor),
  );
  if (!answer.ok) return answer;
  const notified = hours === undefined ? success(null) : await applyKeepHours(c, hours);
  return notified.ok ? success(settingsView(answer.value)) : notified;
}

function refuseTopUp(c: AppContext, wanted: AutoTopUpSettings | null): Refusal | null {
  if (wanted === null) return null;
  const { payments, numbers } = c.var.config;
  if (payments === null) return refuse({ kind: "payments_off" });
  const { PURCHASE_DOLLARS_MIN: least, PURCHASE_DOLLARS_MAX: most } = numbers;
  const amount = wanted.amountMicro / MICROS_PER_DOLLAR;
  if (amount >= least && amount <= most) return null;
  const param = "auto_top_up.amount_dollars";
  return invalid(`${param} must be a number from ${least} to ${most}.`, param);
}

const SETTINGS_ROLES: readonly Role[] = ["owner", "admin"];

async function checkKeepHours(c: AppContext, hours: number): Promise<Result<null>> {
  if (SETTINGS_ROLES.includes(c.var.member.role)) return success(null);
  const before = await callWalletOfCaller(c, (wallet) => wallet.readSettings());
  if (!before.ok) return before;
  return before.value.keepResponsesHours === hours
    ? success(null)
    : refuse({ kind: "role_required", roles: SETTINGS_ROLES });
}

/** Applies a changed retention time to stored responses. */
function applyKeepHours(c: AppContext, hours: number): Promise<Result<null>> {
  const { caller } = c.var.admitted;
  return callObject(() => objectsOf(c.env).kept(caller.orgId).keepFor(hours));
}

function settingsView(settings: SettingsWithBudgets) {
  return {
    default_user_monthly_quota_dollars: toDollars(settings.defaultUserMonthlyQuotaMicro),
    default_user_daily_quota_dollars: toDollars(settings.defaultUserDailyQuotaMicro),
    default_alert_threshold: settings.defaultAlertThreshold,
    low_balance_threshold_dollars: toDollars(settings.lowBalanceThresholdMicro),
    keep_responses_hours: settings.keepResponsesHours,
    auto_top_up: autoTopUpView(settings.autoTopUp),
    tag_keys: settings.tagKeys,
    budgets: settings.budgets.map(budgetStatusView),
    policy: settings.policy,
    operator_policy: settings.operatorPolicy,
    max_concurrent: settings.maxConcurrent,
  };
}
