import { errorDocsAnchorOf, errorResponseOf } from "../../src/shared/http/failure-mapping.ts";
import type { Dialect, RateLimitStates } from "../../src/shared/http/dialect.ts";
import { findDialect } from "../../src/models/endpoints/dialect.route.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";

type Kind = Failure["kind"];
type Samples = { readonly [K in Kind]: readonly Extract<Failure, { kind: K }>[] };

const message = "Something is wrong.";
const ONE = micros(1);
const code = (kind: "conflict" | "invalid_request", word?: string) =>
  ({ kind, message, param: null, ...(word !== undefined && { code: word }) }) as never;
/** Samples in which open holds cause the error, and in which they don't. */
const HELD = { requiredMicro: ONE, heldMicro: ONE, onlyHolds: true };
const SPENT = { ...HELD, onlyHolds: false };
const BUDGET = { period: "day", budgetMicro: ONE, leftMicro: ONE, resetsAt: 1 } as const;
const LIMIT = {
  scope: "organization",
  budgetId: "lim_1",
  unit: "dollars",
  window: "60m",
  limit: 1,
  left: 1,
  required: 2,
  resetsAt: 1,
} as const;
const QUOTA = { period: "day", quotaMicro: ONE, leftMicro: ONE, resetsAt: 1 } as const;
const minute = { limit: 1, retryAfterMs: 1000 };
const tokens = { ...minute, remaining: 0, required: 2 };

/**
 * A sample of every failure, from which the document's errors derive. A missing kind doesn't
 * compile.
 */
const SAMPLES: Samples = {
  invalid_request: [
    undefined,
    "context_length_exceeded",
    "content_filter",
    "previous_response_not_found",
  ].map((word) => code("invalid_request", word)),
  invalid_api_key: [{ kind: "invalid_api_key" }],
  balance_too_low: [
    { kind: "balance_too_low", balanceMicro: ONE, ...HELD },
    { kind: "balance_too_low", balanceMicro: ONE, ...SPENT },
    { kind: "balance_too_low", balanceMicro: ONE, ...SPENT, purchaseId: "pur_1" },
  ],
  payment_reversed: [{ kind: "payment_reversed", owedMicro: ONE }],
  payments_off: [{ kind: "payments_off" }],
  purchase_limit: [{ kind: "purchase_limit", why: "day", ...minute }],
  purchase_in_progress: [{ kind: "purchase_in_progress", purchaseId: "pur_1" }],
  key_budget_exceeded: [
    { kind: "key_budget_exceeded", ...BUDGET, ...HELD },
    { kind: "key_budget_exceeded", ...BUDGET, ...SPENT },
  ],
  budget_exceeded: [
    { kind: "budget_exceeded", ...LIMIT, held: 5, onlyHolds: true },
    { kind: "budget_exceeded", ...LIMIT, held: 0, onlyHolds: false },
    { kind: "budget_exceeded", ...LIMIT, scope: "end_user", held: 0, onlyHolds: false },
  ],
  model_not_allowed: [{ kind: "model_not_allowed", model: "m" }],
  hold_not_allowed: [{ kind: "hold_not_allowed" }],
  route_not_allowed: [
    { kind: "route_not_allowed", model: "m", scope: "organization", field: "allowed_providers" },
  ],
  paused: [{ kind: "paused", pauseId: "pau_1", scope: "key", reason: "r", until: 1 }],
  region_mismatch: [{ kind: "region_mismatch", home: "eu" }],
  role_required: [{ kind: "role_required", roles: ["owner"] }],
  organization_suspended: [{ kind: "organization_suspended" }],
  key_is_limited: [{ kind: "key_is_limited" }],
  not_found: [{ kind: "not_found", message }],
  model_not_found: [{ kind: "model_not_found", model: "m" }],
  method_not_allowed: [{ kind: "method_not_allowed", allow: ["GET"] }],
  request_timeout: [{ kind: "request_timeout" }],
  conflict: [
    undefined,
    "last_owner",
    "balance_too_low",
    "too_many_keys",
    "too_many_webhooks",
    "webhook_disabled",
    "replay_in_progress",
    "too_many_secrets",
    "too_many_sessions",
    "no_saved_card",
    "no_purchases",
    "nothing_paid",
    "refund_refused",
    "price_exists",
    "price_in_force",
    "price_list_in_use",
    "hold_ended",
    "merchant_exists",
    "operator_pause",
    "too_many_pauses",
  ].map((word) => code("conflict", word)),
  idempotency_replay: [
    { kind: "idempotency_replay", made: "generation", id: "req_1" },
    { kind: "idempotency_replay", made: "key", id: "key_1" },
  ],
  idempotency_in_progress: [{ kind: "idempotency_in_progress" }],
  idempotency_mismatch: [{ kind: "idempotency_mismatch" }],
  body_too_large: [{ kind: "body_too_large", bytesMax: 1 }],
  unsupported_media_type: [{ kind: "unsupported_media_type", message }],
  no_console_session: [{ kind: "no_console_session" }],
  origin_not_allowed: [{ kind: "origin_not_allowed" }],
  login_refused: [{ kind: "login_refused", why: "unknown" }],
  login_too_old: [{ kind: "login_too_old" }],
  read_only: [{ kind: "read_only" }],
  issuer_unreachable: [{ kind: "issuer_unreachable" }],
  rate_limited: [
    { kind: "rate_limited", scope: "organization", ...minute },
    { kind: "rate_limited", scope: "key", ...minute, orgId: "o" },
  ],
  concurrency_limited: [{ kind: "concurrency_limited", scope: "key", limit: 1 }],
  tokens_limited: [{ kind: "tokens_limited", ...tokens }],
  tokens_over_limit: [{ kind: "tokens_over_limit", limit: 1, prompt: 2, required: 3 }],
  quota_exceeded: [
    { kind: "quota_exceeded", ...QUOTA, ...HELD },
    { kind: "quota_exceeded", ...QUOTA, ...SPENT },
  ],
  too_many_end_users: [{ kind: "too_many_end_users" }],
  internal: [{ kind: "internal" }],
  upstream_error: [{ kind: "upstream_error" }],
  upstream_overloaded: [{ kind: "upstream_overloaded", retryAfterSeconds: 1 }],
  home_region_unreachable: [{ kind: "home_region_unreachable" }],
  overloaded: [{ kind: "overloaded" }],
  storage_unavailable: [{ kind: "storage_unavailable" }],
  prices_unavailable: [{ kind: "prices_unavailable" }],
  price_list_differs: [{ kind: "price_list_differs", list: null }],
  candidates_required: [{ kind: "candidates_required" }],
  misconfigured: [{ kind: "misconfigured" }],
};

const byAnchor = new Map<string, Failure[]>();
for (const failure of Object.values(SAMPLES).flat()) {
  const anchor = errorDocsAnchorOf(failure);
  byAnchor.set(anchor, [...(byAnchor.get(anchor) ?? []), failure]);
}

/** A failure on a path. Shapes are Anthropic's body, OpenAI's body or a stream event. */
type DocumentedFailure = {
  readonly anchor: string;
  readonly status: number;
  readonly headers: readonly string[];
  readonly shape: "openai" | "messages" | "stream";
};

/** The charge of a failed request. */
const CHARGED = { costMicro: ONE, generationId: "req_1" };

/**
 * Returns a path's failures in each format, for anchors of docs/errors.md. Failures of paid paths
 * can include a charge. Throws for an unknown anchor.
 */
export function documentedFailures(
  path: string,
  anchors: Iterable<string>,
  isPaid: boolean,
): readonly DocumentedFailure[] {
  const dialects = dialectsOf(path);
  return [...new Set(anchors)].flatMap((anchor) => {
    const samples = byAnchor.get(anchor);
    if (samples === undefined) throw new Error(`no failure has the anchor ${anchor}`);
    const all: readonly Failure[] = isPaid
      ? [...samples, ...samples.map((sample) => ({ ...sample, charged: CHARGED }))]
      : samples;
    return all.flatMap((sample) => dialects.map((dialect) => failuresIn(dialect, anchor, sample)));
  });
}

function failuresIn(dialect: Dialect | null, anchor: string, failure: Failure): DocumentedFailure {
  const own = dialect?.error(failure, "req_1") ?? null;
  if (own === null) {
    const { status, headers = {} } = errorResponseOf(failure);
    return { anchor, status, headers: Object.keys(headers), shape: "openai" };
  }
  const headers = Object.keys(own.headers).filter((name) => name !== "content-type");
  const shape = typeof own.body === "string" ? "stream" : "messages";
  return { anchor, status: own.status, headers, shape };
}

/**
 * Returns extra header names on a path. `always` are in every format; `some` are in one format or
 * only for keys with a token limit.
 */
export function dialectHeaders(path: string): Readonly<Record<"always" | "some", string[]>> {
  const rate = { limit: 1, remaining: 1, resetMs: 1 };
  const named = (limits: RateLimitStates): string[][] =>
    dialectsOf(path).map((one) => Object.keys(one?.headers("req_1", limits) ?? {}));
  const usual = named({ rate });
  const all = new Set(named({ rate, tokens: rate }).flat());
  const always = [...all].filter((name) => usual.every((names) => names.includes(name)));
  return { always, some: [...all].filter((name) => !always.includes(name)) };
}

/** Headers of clients with their own format: none, Codex and Anthropic's. */
const CLIENTS: readonly Readonly<Record<string, string>>[] = [
  {},
  { originator: "codex_cli_rs", "user-agent": "codex_cli_rs/1", accept: "text/event-stream" },
  { "anthropic-version": "2023-06-01" },
];

/** Returns a path's formats. Null is OpenAI's. */
function dialectsOf(path: string): readonly (Dialect | null)[] {
  const dialects = CLIENTS.map((headers) =>
    findDialect(path, { header: (name) => headers[name], query: () => undefined }),
  );
  return [...new Set(dialects)];
}

/** Every anchor of docs/errors.md with a failure. */
export const ANCHORS: readonly string[] = [...byAnchor.keys()];
