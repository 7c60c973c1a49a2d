import * as z from "zod/mini";
import { BUDGET_SCOPES, BUDGET_UNITS } from "./budgets.ts";
import type { BudgetScope, BudgetUnit } from "./budgets.ts";
import { BUDGET_PERIODS } from "./key-terms.ts";
import type { BudgetPeriod } from "./key-terms.ts";
import { micros } from "./money.ts";
import type { Micros } from "./money.ts";
import type { Paused } from "./paused.ts";
import { POLICY_FIELDS, POLICY_SCOPES } from "./policy.ts";
import type { PolicyField, PolicyScope } from "./policy.ts";

/** An expected failure. `http/failure-mapping.ts` maps it to a response. */
export type Failure = FailureKinds & { readonly charged?: FailureCharge };

export type FailureCharge = {
  readonly costMicro: Micros;
  readonly generationId: string;
};

type FailureKinds =
  | {
      readonly kind: "invalid_request";
      readonly message: string;
      readonly param: string | null;
      readonly code?: string;
      readonly isTooLarge?: true;
    }
  /**
   * `isForGood`: the key can never become valid again. `twoHeaders`, for keys in both headers: the
   * header with the invalid key, or `both` if the keys differ.
   */
  | {
      readonly kind: "invalid_api_key";
      readonly twoHeaders?: "authorization" | "x-api-key" | "both";
      readonly expiredAt?: number;
      readonly isForGood?: true;
    }
  /**
   * Amounts are in micro-credits. For a session, they are its budget's amounts, or 0 if the key's
   * budget or the balance is too low.
   */
  | ({
      readonly kind: "balance_too_low";
      readonly balanceMicro: Micros;
      readonly session?: true;
      readonly purchaseId?: string;
    } & Shortage)
  /** A debt from refunded or disputed payments. The amount is null for requests of a session. */
  | { readonly kind: "payment_reversed"; readonly owedMicro: Micros | null }
  /** `leftMicro` ignores open holds. `resetsAt` is Unix ms, or null for a total budget. */
  | ({
      readonly kind: "key_budget_exceeded";
      readonly period: BudgetPeriod | null;
      readonly budgetMicro: Micros;
      readonly leftMicro: Micros;
      readonly resetsAt: number | null;
      readonly session?: true;
    } & Shortage)
  /**
   * Amounts are in the budget's unit. `left` ignores open holds. `resetsAt` is Unix ms, or null for
   * a total budget.
   */
  | {
      readonly kind: "budget_exceeded";
      readonly scope: BudgetScope;
      readonly budgetId: string;
      readonly unit: BudgetUnit;
      readonly window: string;
      readonly limit: number;
      readonly left: number;
      readonly held: number;
      readonly required: number;
      readonly resetsAt: number | null;
      readonly onlyHolds: boolean;
    }
  | { readonly kind: "model_not_allowed"; readonly model: string }
  /**
   * `owner` is the only party that can make this change. If absent, the key or session lacks
   * `may_hold`.
   */
  | { readonly kind: "hold_not_allowed"; readonly owner?: "merchant" | "key" }
  /** This scope's policy allows none of the model's routes. */
  | {
      readonly kind: "route_not_allowed";
      readonly model: string;
      readonly scope: PolicyScope;
      readonly field: PolicyField;
    }
  | Paused
  | { readonly kind: "region_mismatch"; readonly home: string }
  | { readonly kind: "role_required"; readonly roles: readonly string[] }
  | { readonly kind: "organization_suspended" }
  | { readonly kind: "key_is_limited" }
  | { readonly kind: "not_found"; readonly message: string }
  /** `message` is set if the model serves another kind of call. */
  | { readonly kind: "model_not_found"; readonly model: string; readonly message?: string }
  | { readonly kind: "method_not_allowed"; readonly allow: readonly string[] }
  | { readonly kind: "request_timeout" }
  | {
      readonly kind: "conflict";
      readonly message: string;
      readonly param: string | null;
      readonly code?: string;
    }
  /**
   * An earlier request with this Idempotency-Key created this generation or API key. Retries never
   * run.
   */
  | {
      readonly kind: "idempotency_replay";
      readonly made: "generation" | "key";
      readonly id: string;
    }
  | { readonly kind: "idempotency_in_progress" }
  | { readonly kind: "idempotency_mismatch" }
  | { readonly kind: "body_too_large"; readonly bytesMax: number }
  | { readonly kind: "unsupported_media_type"; readonly message: string }
  | { readonly kind: "no_console_session" }
  /**
   * `refused`: the identity provider's response is invalid. `unknown`: no account has this login.
   * `unproven`: the email address isn't verified.
   */
  | {
      readonly kind: "login_refused";
      readonly why:
        | "expired"
        | "denied"
        | "refused"
        | "unknown"
        | "unproven"
        | "other_person"
        | "too_many";
      /** The unknown account's email address, if the identity provider returned it. */
      readonly account?: string | null;
    }
  | { readonly kind: "login_too_old" }
  | { readonly kind: "issuer_unreachable" }
  | { readonly kind: "origin_not_allowed" }
  | { readonly kind: "read_only" }
  | {
      readonly kind: "rate_limited";
      readonly scope:
        | "key"
        | "session"
        | "organization"
        | "console"
        | "login"
        | "webhook_tests"
        | "export";
      readonly limit: number;
      readonly retryAfterMs: number;
      /** The organization of a known key, for the response header `openai-organization`. */
      readonly orgId?: string;
    }
  /** `limit` is null for a session. */
  | {
      readonly kind: "concurrency_limited";
      readonly scope: "key" | "organization";
      readonly limit: number | null;
    }
  | {
      readonly kind: "tokens_limited";
      readonly limit: number;
      readonly remaining: number;
      readonly required: number;
      readonly retryAfterMs: number;
    }
  | {
      readonly kind: "tokens_over_limit";
      readonly limit: number;
      readonly prompt: number;
      readonly required: number;
      /** The request's field for the output cap, by default `max_tokens`. */
      readonly param?: string;
    }
  | ({
      readonly kind: "quota_exceeded";
      readonly period: "day" | "month";
      readonly quotaMicro: Micros;
      readonly leftMicro: Micros;
      readonly resetsAt: number;
    } & Shortage)
  | { readonly kind: "too_many_end_users" }
  | { readonly kind: "payments_off" }
  | {
      readonly kind: "purchase_limit";
      readonly why: "day" | "card_day" | "first_week" | "checkouts" | "declines";
      readonly limit: number;
      readonly retryAfterMs: number;
    }
  | { readonly kind: "purchase_in_progress"; readonly purchaseId: string }
  | { readonly kind: "internal" }
  | { readonly kind: "upstream_error" }
  | { readonly kind: "upstream_overloaded"; readonly retryAfterSeconds: number }
  | { readonly kind: "home_region_unreachable" }
  | { readonly kind: "overloaded" }
  | { readonly kind: "storage_unavailable" }
  | { readonly kind: "prices_unavailable" }
  /**
   * The hold used prices other than those of `list`, the organization's price list. Null means the
   * default prices.
   */
  | { readonly kind: "price_list_differs"; readonly list: string | null }
  /** A policy applies, but the hold request lists no candidate routes. */
  | { readonly kind: "candidates_required" }
  | { readonly kind: "misconfigured" };

type Shortage = {
  readonly requiredMicro: Micros;
  readonly heldMicro: Micros;
  readonly onlyHolds: boolean;
};

/** A value or an expected failure. Bugs throw. */
export type Result<T> = Success<T> | Refusal;
export type Success<T> = { readonly ok: true; readonly value: T };
export type Refusal = { readonly ok: false; readonly failure: Failure };

export function success<const T>(value: T): Success<T> {
  return { ok: true, value };
}

export function refuse(failure: Failure): Refusal {
  return { ok: false, failure };
}

export function flattenResult<T>(result: Result<Result<T>>): Result<T> {
  return result.ok ? result.value : result;
}

/** Returns a 400 failure. `param` names the invalid field. */
export function invalid(message: string, param: string | null = null): Refusal {
  return refuse({ kind: "invalid_request", message, param });
}

export function conflict(message: string, param: string | null = null, code?: string): Refusal {
  return refuse({ kind: "conflict", message, param, ...(code !== undefined && { code }) });
}

type Kind = Failure["kind"];
/**
 * The schemas of failures from another region. Null for kinds that another region never returns.
 */
type FailureSchemas = {
  readonly [K in Kind]: z.ZodMiniType<Omit<Extract<Failure, { kind: K }>, "charged">> | null;
};

const nonNegativeInt = z.int().check(z.minimum(0));
const microsSchema = z.pipe(nonNegativeInt, z.transform(micros));
const shortText = z.string().check(z.minLength(1), z.maxLength(256));
const booleanSchema = z.boolean();
const optionalTrue = z.exactOptional(z.literal(true));
const shortageFields = {
  requiredMicro: microsSchema,
  heldMicro: microsSchema,
  onlyHolds: booleanSchema,
};
const schemaOf = <K extends Kind, S extends z.core.$ZodLooseShape>(kind: K, shape: S) =>
  z.object({ kind: z.literal(kind), ...shape });

const FAILURE_SCHEMAS = {
  invalid_request: schemaOf("invalid_request", {
    message: z.string(),
    param: z.nullable(shortText),
    code: z.exactOptional(shortText),
    isTooLarge: optionalTrue,
  }),
  invalid_api_key: schemaOf("invalid_api_key", {
    expiredAt: z.exactOptional(nonNegativeInt),
    isForGood: optionalTrue,
  }),
  balance_too_low: schemaOf("balance_too_low", {
    balanceMicro: microsSchema,
    session: optionalTrue,
    purchaseId: z.exactOptional(shortText),
    ...shortageFields,
  }),
  payment_reversed: schemaOf("payment_reversed", { owedMicro: z.nullable(microsSchema) }),
  key_budget_exceeded: schemaOf("key_budget_exceeded", {
    period: z.nullable(z.enum(BUDGET_PERIODS)),
    budgetMicro: microsSchema,
    leftMicro: microsSchema,
    resetsAt: z.nullable(nonNegativeInt),
    session: optionalTrue,
    ...shortageFields,
  }),
  budget_exceeded: schemaOf("budget_exceeded", {
    scope: z.enum(BUDGET_SCOPES),
    budgetId: shortText,
    unit: z.enum(BUDGET_UNITS),
    window: shortText,
    limit: nonNegativeInt,
    left: nonNegativeInt,
    held: nonNegativeInt,
    required: nonNegativeInt,
    resetsAt: z.nullable(nonNegativeInt),
    onlyHolds: booleanSchema,
  }),
  model_not_allowed: schemaOf("model_not_allowed", { model: z.string() }),
  route_not_allowed: schemaOf("route_not_allowed", {
    model: z.string(),
    scope: z.enum(POLICY_SCOPES),
    field: z.enum(POLICY_FIELDS),
  }),
  organization_suspended: schemaOf("organization_suspended", {}),
  paused: schemaOf("paused", {
    pauseId: shortText,
    scope: z.nullable(z.enum(BUDGET_SCOPES)),
    reason: z.nullable(z.string()),
    until: z.nullable(nonNegativeInt),
  }),
  conflict: schemaOf("conflict", {
    message: z.string(),
    param: z.nullable(shortText),
    code: z.exactOptional(shortText),
  }),
  idempotency_replay: schemaOf("idempotency_replay", {
    made: z.literal("generation"),
    id: shortText,
  }),
  idempotency_in_progress: schemaOf("idempotency_in_progress", {}),
  idempotency_mismatch: schemaOf("idempotency_mismatch", {}),
  body_too_large: schemaOf("body_too_large", { bytesMax: nonNegativeInt }),
  rate_limited: schemaOf("rate_limited", {
    scope: z.enum(["organization", "session"]),
    limit: nonNegativeInt,
    retryAfterMs: nonNegativeInt,
  }),
  concurrency_limited: schemaOf("concurrency_limited", {
    scope: z.enum(["key", "organization"]),
    limit: z.nullable(nonNegativeInt),
  }),
  tokens_limited: schemaOf("tokens_limited", {
    limit: nonNegativeInt,
    remaining: nonNegativeInt,
    required: nonNegativeInt,
    retryAfterMs: nonNegativeInt,
  }),
  tokens_over_limit: schemaOf("tokens_over_limit", {
    limit: nonNegativeInt,
    prompt: nonNegativeInt,
    required: nonNegativeInt,
  }),
  quota_exceeded: schemaOf("quota_exceeded", {
    period: z.enum(["day", "month"]),
    quotaMicro: microsSchema,
    leftMicro: microsSchema,
    resetsAt: nonNegativeInt,
    ...shortageFields,
  }),
  too_many_end_users: schemaOf("too_many_end_users", {}),
  overloaded: schemaOf("overloaded", {}),
  storage_unavailable: schemaOf("storage_unavailable", {}),
  payments_off: null,
  purchase_limit: null,
  purchase_in_progress: null,
  price_list_differs: schemaOf("price_list_differs", { list: z.nullable(shortText) }),
  hold_not_allowed: schemaOf("hold_not_allowed", {
    owner: z.exactOptional(z.enum(["merchant", "key"])),
  }),
  candidates_required: schemaOf("candidates_required", {}),
  region_mismatch: null,
  role_required: null,
  key_is_limited: null,
  not_found: schemaOf("not_found", { message: z.string() }),
  model_not_found: null,
  method_not_allowed: null,
  request_timeout: null,
  unsupported_media_type: null,
  no_console_session: null,
  origin_not_allowed: null,
  read_only: null,
  login_refused: null,
  login_too_old: null,
  issuer_unreachable: null,
  internal: null,
  upstream_error: null,
  upstream_overloaded: null,
  home_region_unreachable: null,
  prices_unavailable: null,
  misconfigured: null,
} as const satisfies FailureSchemas;

export const pausedFailureSchema = FAILURE_SCHEMAS.paused;

export const peerFailureSchema: z.ZodMiniType<Failure> = z.union(
  Object.values(FAILURE_SCHEMAS).filter((shape) => shape !== null),
);
