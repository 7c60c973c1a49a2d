import type { Failure } from "./failure.ts";

type FailureTraits = {
  /**
   * When a retry can succeed. `final`: never. `rate`: after the delay. `spending`: after a top-up,
   * a new period or the end of open requests. `other`: the HTTP status decides.
   */
  readonly retry: "final" | "rate" | "spending" | "other";
  /** Set if a request can avoid the failure by allowing fewer models. */
  readonly isAvoidable?: true;
};

const FINAL: FailureTraits = { retry: "final" };
const RATE: FailureTraits = { retry: "rate" };
const SPENDING: FailureTraits = { retry: "spending" };
const OTHER: FailureTraits = { retry: "other" };

export const FAILURE_TRAITS: Readonly<Record<Failure["kind"], FailureTraits>> = {
  invalid_request: OTHER,
  invalid_api_key: OTHER,
  balance_too_low: { ...SPENDING, isAvoidable: true },
  payment_reversed: SPENDING,
  key_budget_exceeded: { ...SPENDING, isAvoidable: true },
  budget_exceeded: { ...SPENDING, isAvoidable: true },
  model_not_allowed: FINAL,
  hold_not_allowed: OTHER,
  route_not_allowed: FINAL,
  region_mismatch: OTHER,
  role_required: OTHER,
  organization_suspended: OTHER,
  paused: OTHER,
  key_is_limited: OTHER,
  not_found: OTHER,
  model_not_found: OTHER,
  method_not_allowed: OTHER,
  request_timeout: OTHER,
  conflict: OTHER,
  idempotency_replay: OTHER,
  idempotency_in_progress: OTHER,
  idempotency_mismatch: OTHER,
  body_too_large: OTHER,
  unsupported_media_type: OTHER,
  no_console_session: OTHER,
  login_refused: OTHER,
  login_too_old: OTHER,
  issuer_unreachable: OTHER,
  origin_not_allowed: OTHER,
  read_only: OTHER,
  rate_limited: RATE,
  concurrency_limited: RATE,
  tokens_limited: { ...RATE, isAvoidable: true },
  tokens_over_limit: { ...FINAL, isAvoidable: true },
  quota_exceeded: { ...SPENDING, isAvoidable: true },
  too_many_end_users: FINAL,
  payments_off: OTHER,
  purchase_limit: OTHER,
  purchase_in_progress: OTHER,
  internal: OTHER,
  upstream_error: OTHER,
  upstream_overloaded: OTHER,
  home_region_unreachable: OTHER,
  overloaded: OTHER,
  storage_unavailable: OTHER,
  prices_unavailable: OTHER,
  price_list_differs: OTHER,
  candidates_required: OTHER,
  misconfigured: OTHER,
};
