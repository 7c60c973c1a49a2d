import { EVERYONE } from "../../src/routes.ts";
import { OPERATOR_ROLES } from "../../src/shared/config/config-people.ts";
import type { OperatorEndpoint } from "../../src/operator/operator-context.ts";
import type { RouteRow } from "../../src/routes.ts";
import type { Description, Row, OperationFacts } from "./operation.ts";

/** The errors of any path. */
const ANYWHERE = ["invalid_request", "invalid_api_key", "misconfigured", "internal"];
/** The errors of a body. */
const BODY = ["request_timeout", "body_too_large", "unsupported_media_type", "overloaded"];
/** The errors of a key: another home, another organization's page, its limit, or an unavailable home. */
const KEY = [
  "region_mismatch",
  "origin_not_allowed",
  "rate_limit_exceeded",
  "overloaded",
  "storage_unavailable",
  "home_region_unreachable",
];

/** Returns the errors of any row with a body or a path parameter. */
function errorsOfRow(
  { path }: Row,
  row: { readonly readsBody: boolean; readonly hasKey: boolean },
): readonly string[] {
  return [
    ...ANYWHERE,
    ...(row.hasKey ? KEY : ["storage_unavailable", "overloaded"]),
    ...(row.readsBody ? BODY : []),
    ...(path.includes(":") ? ["not_found"] : []),
  ];
}

/** Returns the facts of a row below `/v1`. */
export function standingOf(row: RouteRow, { body }: Description): OperationFacts {
  const { reach, who, method } = row;
  const isPaid = reach === "paid";
  const changes = method !== "GET" && (reach === "home" || reach === "managed");
  const errors = [
    ...errorsOfRow(row, { readsBody: body !== undefined, hasKey: true }),
    ...(changes || isPaid ? ["organization_suspended"] : []),
    ...(reach === "managed" ? ["key_is_limited"] : []),
    ...(who.roles === EVERYONE ? [] : ["role_required"]),
  ];
  return { roles: rolesOf(row), errors, isPaid, isStrict: changes };
}

function rolesOf({ who: { roles, others } }: RouteRow): string {
  if (others === undefined) return roles.join(", ");
  return others.length === 0 ? "everyone its own" : `${others.join(", ")}; everyone else its own`;
}

/** Returns the facts of a row below `/admin/v1`. */
export function operatorFacts(row: OperatorEndpoint): OperationFacts {
  const readsBody = row.method === "POST" || row.method === "PATCH";
  const everyone = row.roles.length === OPERATOR_ROLES.length;
  const errors = [
    ...errorsOfRow(row, { readsBody, hasKey: false }),
    ...(everyone ? [] : ["role_required"]),
  ];
  const roles = everyone ? "every operator" : `operators of the role ${row.roles.join(" or ")}`;
  return { roles, errors, isPaid: false, isStrict: true };
}
