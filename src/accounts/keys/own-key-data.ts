import { timestamp } from "../../shared/clock.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import type { KeyStatus } from "../../shared/key-status.ts";
import { dollarsOf, micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { Region } from "../../shared/regions.ts";
import type { Session } from "../../shared/session.ts";
import { mapNullable } from "./terms.ts";

const RESET_BY_PERIOD = { day: "daily", week: "weekly", month: "monthly" } as const;
const RESET_BY_WINDOW: Readonly<Record<string, string>> = RESET_BY_PERIOD;

type CallingKey = {
  readonly label: string;
  readonly rpmLimit: number;
  readonly memberId: string | null;
  readonly orgId: string;
  readonly region: Region;
  readonly session: Session | null;
};

const OPENROUTER_REGIONS: Readonly<Record<string, string>> = { eu: "europe" };

/**
 * Returns `data` of GET /v1/key in OpenRouter's format, in dollars. OpenRouter's clients hide their
 * usage panel if a field is missing.
 */
export function ownKeyData(status: KeyStatus, callingKey: CallingKey) {
  const { label, rpmLimit, memberId, orgId, region, session } = callingKey;
  const { limitMicro, leftMicro, period } = budgetOf(status, session);
  const spend = spendOf(status, session);
  const expiresAt = session?.expiresAt ?? status.terms.expiresAt;
  return {
    label,
    limit: mapNullable(limitMicro, dollarsOf),
    limit_remaining: mapNullable(leftMicro, dollarsOf),
    limit_reset: mapNullable(period, (one) => RESET_BY_PERIOD[one]),
    ...budgetsOf(status, { limitMicro, leftMicro, period }),
    usage: dollarsOf(spend.total),
    usage_daily: dollarsOf(spend.day),
    usage_weekly: dollarsOf(spend.week),
    usage_monthly: dollarsOf(spend.month),
    ...FIXED_FIELDS,
    expires_at: mapNullable(expiresAt, timestamp),
    rate_limit: { requests: rpmLimit, interval: "60s", note: "Requests per minute." },
    creator_user_id: memberId,
    organization_id: orgId,
    workspace_id: null,
    allowed_data_regions: [OPENROUTER_REGIONS[region] ?? region],
    free_model_daily_requests: { limit: 0, remaining: 0, used: 0 },
  };
}

const FIXED_FIELDS = {
  byok_usage: 0,
  byok_usage_daily: 0,
  byok_usage_weekly: 0,
  byok_usage_monthly: 0,
  include_byok_in_limit: false,
  is_free_tier: false,
  is_management_key: false,
  is_provisioning_key: false,
} as const;

function spendOf(status: KeyStatus, session: Session | null): NonNullable<KeyStatus["spend"]> {
  const total = status.session?.spentMicro ?? micros(0);
  const own = { total, day: total, week: total, month: total };
  return session === null ? (status.spend ?? own) : own;
}

type Budget = {
  readonly limitMicro: Micros | null;
  readonly leftMicro: Micros | null;
  readonly period: KeyTerms["budgetPeriod"];
};

function budgetOf({ terms, budget, session: spend }: KeyStatus, session: Session | null): Budget {
  if (session === null) {
    const { budgetMicro: limitMicro, budgetPeriod: period } = terms;
    return { limitMicro, leftMicro: budget?.leftMicro ?? null, period };
  }
  const { budgetMicro: limitMicro } = session;
  const used = (spend?.spentMicro ?? 0) + (spend?.heldMicro ?? 0);
  const leftMicro = limitMicro === null ? null : micros(Math.max(0, limitMicro - used));
  return { limitMicro, leftMicro, period: null };
}

/** OpenRouter's names of budget scopes. Other scopes keep their names. */
const OPENROUTER_SCOPES: Readonly<Record<string, string>> = {
  key: "api_key",
  organization: "workspace",
};

function budgetsOf(
  { budget, budgets }: KeyStatus,
  { limitMicro, leftMicro, period }: Budget,
): { readonly budgets: readonly KeyBudget[]; readonly effective_budget: KeyBudget | null } {
  const own =
    limitMicro === null
      ? []
      : [
          keyBudget("key_limit", {
            id: null,
            limit: limitMicro,
            spend: limitMicro - (leftMicro ?? limitMicro),
            window: period ?? "total",
            resetsAt: budget?.resetsAt ?? null,
          }),
        ];
  const others = budgets
    .filter((one) => one.budget.unit === "dollars")
    .map(({ scope, budget: { id, amount: limit, window }, used, held, resetsAt }) =>
      keyBudget(OPENROUTER_SCOPES[scope] ?? scope, {
        id,
        limit,
        spend: used + held,
        window,
        resetsAt,
      }),
    );
  const all = [...own, ...others];
  const [tightest = null] = all.toSorted((one, other) => one.remaining_usd - other.remaining_usd);
  return { budgets: all, effective_budget: tightest };
}

type KeyBudget = ReturnType<typeof keyBudget>;

function keyBudget(
  scope: string,
  fields: {
    readonly id: string | null;
    readonly limit: number;
    readonly spend: number;
    readonly window: string;
    readonly resetsAt: number | null;
  },
) {
  return {
    scope,
    budget_id: fields.id,
    guardrail_id: null,
    include_byok: FIXED_FIELDS.include_byok_in_limit,
    limit_usd: dollarsOf(micros(fields.limit)),
    spend_usd: dollarsOf(micros(fields.spend)),
    remaining_usd: dollarsOf(micros(fields.limit - fields.spend)),
    reset_interval:
      fields.window === "total" ? null : (RESET_BY_WINDOW[fields.window] ?? fields.window),
    resets_at: mapNullable(fields.resetsAt, timestamp),
  };
}
