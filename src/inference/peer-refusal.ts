import * as z from "zod/mini";
import type { Failure } from "../lib/failure.ts";
import { BUDGET_PERIODS } from "../lib/key-terms.ts";
import { micros } from "../lib/money.ts";

type Kind = Failure["kind"];
/** How a refusal of each kind is read that the other region gave; null: it gives none of it, and one is no answer. */
type Shapes = {
  readonly [K in Kind]: z.ZodMiniType<Omit<Extract<Failure, { kind: K }>, "charged">> | null;
};

const whole = z.int().check(z.minimum(0));
const amount = z.pipe(whole, z.transform(micros));
const word = z.string().check(z.minLength(1), z.maxLength(256));
const flag = z.boolean();
const yes = z.exactOptional(z.literal(true));
/** What a request needs and open requests hold: see `Shortage` in lib/failure.ts. */
const shortage = { requiredMicro: amount, heldMicro: amount, onlyHolds: flag };
const of = <K extends Kind, S extends z.core.$ZodLooseShape>(kind: K, shape: S) =>
  z.object({ kind: z.literal(kind), ...shape });

const SHAPES = {
  invalid_request: of("invalid_request", {
    message: z.string(),
    param: z.nullable(word),
    code: z.exactOptional(word),
    isTooLarge: yes,
  }),
  invalid_api_key: of("invalid_api_key", { expiredAt: z.exactOptional(whole), isForGood: yes }),
  balance_too_low: of("balance_too_low", {
    balanceMicro: amount,
    session: yes,
    purchaseId: z.exactOptional(word),
    ...shortage,
  }),
  payment_reversed: of("payment_reversed", { owedMicro: z.nullable(amount) }),
  key_budget_exceeded: of("key_budget_exceeded", {
    period: z.nullable(z.enum(BUDGET_PERIODS)),
    budgetMicro: amount,
    leftMicro: amount,
    resetsAt: z.nullable(whole),
    session: yes,
    ...shortage,
  }),
  model_not_allowed: of("model_not_allowed", { model: z.string() }),
  organization_suspended: of("organization_suspended", {}),
  conflict: of("conflict", {
    message: z.string(),
    param: z.nullable(word),
    code: z.exactOptional(word),
  }),
  idempotency_replay: of("idempotency_replay", { made: z.literal("generation"), id: word }),
  idempotency_in_progress: of("idempotency_in_progress", {}),
  idempotency_mismatch: of("idempotency_mismatch", {}),
  body_too_large: of("body_too_large", { bytesMax: whole }),
  rate_limited: of("rate_limited", {
    scope: z.enum(["organization", "session"]),
    limit: whole,
    retryAfterMs: whole,
  }),
  tokens_limited: of("tokens_limited", {
    limit: whole,
    remaining: whole,
    required: whole,
    retryAfterMs: whole,
  }),
  tokens_over_limit: of("tokens_over_limit", { limit: whole, prompt: whole, required: whole }),
  quota_exceeded: of("quota_exceeded", {
    period: z.enum(["day", "month"]),
    quotaMicro: amount,
    leftMicro: amount,
    resetsAt: whole,
    ...shortage,
  }),
  too_many_end_users: of("too_many_end_users", {}),
  overloaded: of("overloaded", {}),
  storage_unavailable: of("storage_unavailable", {}),
  payments_off: null,
  purchase_limit: null,
  purchase_in_progress: null,
  price_list_differs: of("price_list_differs", { list: z.nullable(word) }),
  region_mismatch: null,
  role_required: null,
  key_is_limited: null,
  not_found: null,
  model_not_found: null,
  method_not_allowed: null,
  request_timeout: null,
  unsupported_media_type: null,
  no_console_session: null,
  origin_not_allowed: null,
  login_refused: null,
  login_too_old: null,
  issuer_unreachable: null,
  internal: null,
  upstream_error: null,
  upstream_overloaded: null,
  home_region_unreachable: null,
  prices_unavailable: null,
  misconfigured: null,
} as const satisfies Shapes;

/** A refusal that the other region gave of a hold, of a key or of what is kept; never what it does not give. */
export const peerRefusal: z.ZodMiniType<Failure> = z.union(
  Object.values(SHAPES).filter((shape) => shape !== null),
);
