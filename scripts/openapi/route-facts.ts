import { MEMBER_ROLES } from "../../src/shared/caller.ts";
import { OPERATOR_ROLES } from "../../src/shared/config/config-people.ts";
import type { KeyRoute, OperatorRoute, PeopleRoute, Route } from "../../src/shared/http/route.ts";

/** The parts of an operation that come from its route. */
export type OperationFacts = {
  /** Roles that can call it. */
  readonly roles: string;
  /** Anchors of docs/errors.md for the errors that all routes of this kind can return. */
  readonly errors: readonly string[];
  /**
   * Whether the call costs money. `isStrict`: the call rejects fields that the body's schema lacks.
   */
  readonly isPaid: boolean;
  readonly isStrict: boolean;
};

/** Errors of any path. */
const ANYWHERE = ["invalid_request", "invalid_api_key", "misconfigured", "internal"];
/** Errors of paths with a body. */
const BODY = ["request_timeout", "body_too_large", "unsupported_media_type", "overloaded"];
/**
 * Errors of calls with a key: another home region, another organization's page, a limit, or an
 * unavailable home region.
 */
const KEY = [
  "region_mismatch",
  "origin_not_allowed",
  "rate_limit_exceeded",
  "overloaded",
  "storage_unavailable",
  "home_region_unreachable",
];

/** Errors of every paid path, besides those above. */
const PAID = [
  "insufficient_balance",
  "payment_reversed",
  "key_budget_exceeded",
  "budget_exceeded",
  "organization_suspended",
  "paused",
  "model_not_allowed",
  "route_not_allowed",
  "model_not_found",
  "context_length_exceeded",
  "content_filter",
  "end_user_quota_exceeded",
  "concurrency_limit_exceeded",
  "tokens",
  "too_many_end_users",
  "idempotency_replay",
  "idempotency_in_progress",
  "idempotency_mismatch",
  "upstream_error",
  "upstream_overloaded",
];

/** Returns the errors that a route's body, key and path parameters can cause. */
function errorsOfRow(
  { path }: Route,
  row: { readonly readsBody: boolean; readonly hasKey: boolean },
): readonly string[] {
  return [
    ...ANYWHERE,
    ...(row.hasKey ? KEY : ["storage_unavailable", "overloaded"]),
    ...(row.readsBody ? BODY : []),
    ...(path.includes(":") ? ["not_found"] : []),
  ];
}

/** Returns the facts of a route. */
export function factsOf(row: Route, { body }: { readonly body?: unknown }): OperationFacts {
  if (row.reach === "operators") return operatorFacts(row);
  return row.reach === "people" ? peopleFacts(row) : keyFacts(row, body !== undefined);
}

function keyFacts(row: KeyRoute, readsBody: boolean): OperationFacts {
  const { reach, roles, method } = row;
  const isPaid = reach === "paid";
  const changes = method !== "GET" && (reach === "home" || reach === "managed");
  const errors = [
    ...errorsOfRow(row, { readsBody, hasKey: true }),
    ...(changes || isPaid ? ["organization_suspended"] : []),
    ...(reach === "managed" || row.sessions === false ? ["key_is_limited"] : []),
    ...(roles === MEMBER_ROLES ? [] : ["role_required"]),
    ...(isPaid ? PAID : []),
  ];
  return { roles: rolesOf(row), errors, isPaid, isStrict: changes };
}

function rolesOf({ roles, others }: KeyRoute): string {
  if (others === undefined) return roles.join(", ");
  return others.length === 0
    ? "all roles, for their own objects"
    : `${others.join(", ")}, and other roles for their own objects`;
}

function operatorFacts(row: OperatorRoute): OperationFacts {
  const readsBody = row.method === "POST" || row.method === "PATCH";
  const everyone = row.roles.length === OPERATOR_ROLES.length;
  const errors = [
    ...errorsOfRow(row, { readsBody, hasKey: false }),
    ...(everyone ? [] : ["role_required"]),
  ];
  const roles = everyone ? "every operator" : `operators with the role ${row.roles.join(" or ")}`;
  return { roles, errors, isPaid: false, isStrict: true };
}

function peopleFacts(row: PeopleRoute): OperationFacts {
  const errors = [
    "invalid_request",
    "misconfigured",
    "internal",
    "no_console_session",
    "origin_not_allowed",
    "rate_limit_exceeded",
    "storage_unavailable",
    "overloaded",
    "conflict",
    "role_required",
    ...(row.freshLogin === "never" ? [] : ["login_too_old"]),
    ...(row.method === "GET"
      ? []
      : ["request_timeout", "body_too_large", "unsupported_media_type", "organization_suspended"]),
    ...(row.path.includes(":") ? ["not_found"] : []),
  ];
  const roles = row.roles === null ? "every person who is logged in" : row.roles.join(", ");
  return { roles, errors, isPaid: false, isStrict: true };
}
