import { error } from "./failure-cases.ts";
import type { Cases } from "./failure-cases.ts";

const soon = { "retry-after": "1", "x-should-retry": "true" };

/** Policies, pauses and concurrent requests. */
export const POLICY_CASES = {
  concurrency_limited: [
    [
      { kind: "concurrency_limited", scope: "key", limit: 5 },
      429,
      error(
        "rate_limit_exceeded",
        "concurrency_limit_exceeded",
        "Limit of 5 concurrent requests for this API key reached. Please retry after 1s.",
      ),
      soon,
    ],
    [
      { kind: "concurrency_limited", scope: "organization", limit: null },
      429,
      error(
        "rate_limit_exceeded",
        "concurrency_limit_exceeded",
        "The key or organization that pays for this session has too many requests in progress. Please retry after 1s.",
      ),
      soon,
    ],
  ],
  route_not_allowed: [
    [
      {
        kind: "route_not_allowed",
        model: "smart",
        scope: "member",
        field: "allowed_data_regions",
      },
      403,
      error(
        "permission_denied",
        "route_not_allowed",
        "The policy of this API key's member ('allowed_data_regions') allows no route to the model 'smart'. Use another model, or change the policy.",
        { param: "model", scope: "member", policy_field: "allowed_data_regions" },
      ),
    ],
  ],
  paused: [
    [
      {
        kind: "paused",
        pauseId: "pau_1",
        scope: "key",
        reason: "Costs.",
        until: 1_795_777_200_000,
      },
      403,
      error(
        "permission_denied",
        "paused",
        "New requests of this API key are paused until 2026-11-27T11:00:00.000Z. Reason: Costs.",
        { pause_id: "pau_1", scope: "key", reason: "Costs.", until: "2026-11-27T11:00:00.000Z" },
      ),
    ],
    [
      { kind: "paused", pauseId: "pau_1", scope: null, reason: null, until: null },
      403,
      error("permission_denied", "paused", "New requests of this session are paused.", {
        pause_id: "pau_1",
      }),
    ],
  ],
  candidates_required: [
    [
      { kind: "candidates_required" },
      503,
      error("api_error", "overloaded", "The organization's policy is changing. Please retry."),
      { "retry-after": "1" },
    ],
  ],
} satisfies Partial<Cases>;
