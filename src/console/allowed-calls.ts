import type { OperatorRole } from "../shared/config/config.ts";
import type { Role } from "../shared/caller.ts";
import { OPERATOR_ENDPOINTS } from "../operator/endpoints.ts";
import { PEOPLE_ENDPOINTS } from "./people-endpoints.ts";

export type RightsRow = {
  readonly method: string;
  readonly path: string;
  readonly reach: "paid" | "here" | "home" | "managed";
  readonly who: { readonly roles: readonly Role[]; readonly others?: readonly Role[] };
};
/** A session's identity. A null `role` means a person without an organization. */
export type SessionIdentity =
  | { readonly kind: "key"; readonly role: Role; readonly isLimited: boolean }
  | { readonly kind: "person"; readonly role: Role | null }
  | { readonly kind: "operator"; readonly role: OperatorRole }
  | { readonly kind: "viewer" };
/**
 * Allowed calls by name, such as `GET /v1/keys/{id}`. `own` means only the member's own objects.
 */
export type AllowedCalls = Readonly<Record<string, "all" | "own">>;

/** Paid calls of the playground, which count in the key's limits. */
export const PLAYGROUND: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
]);

/** Viewing operators have no key of their own. */
const OWN_KEY: ReadonlySet<string> = new Set(["/v1/key", "/v1/auth/key"]);

export function allowedCalls(rows: readonly RightsRow[], identity: SessionIdentity): AllowedCalls {
  if (identity.kind === "operator") {
    const { role } = identity;
    const own = OPERATOR_ENDPOINTS.filter(({ roles }) => roles.includes(role));
    return Object.fromEntries(own.map((row) => [nameOf(row, "/admin/v1"), "all"] as const));
  }
  const role = identity.kind === "viewer" ? "owner" : identity.role;
  return {
    ...(role !== null && ofRole(rows, role, identity)),
    ...(identity.kind === "person" && ofPerson(identity.role)),
  };
}

function ofRole(rows: readonly RightsRow[], role: Role, identity: SessionIdentity): AllowedCalls {
  const isViewer = identity.kind === "viewer";
  const isLimited = identity.kind === "key" && identity.isLimited;
  const open = rows.filter(({ method, path, reach, who }) => {
    const isAsking = method === "POST" && (reach === "paid" || reach === "here");
    if (!who.roles.includes(role) || (isLimited && reach === "managed")) return false;
    if (isViewer) return method === "GET" && !OWN_KEY.has(path);
    return !isAsking || PLAYGROUND.has(path);
  });
  return Object.fromEntries(
    open.map((row) => [nameOf(row), (row.who.others ?? [role]).includes(role) ? "all" : "own"]),
  );
}

function ofPerson(role: Role | null): AllowedCalls {
  const open = PEOPLE_ENDPOINTS.filter(
    ({ roles }) => roles === null || (role !== null && roles.includes(role)),
  );
  return Object.fromEntries(
    open.map((row) => [nameOf(row, "/console/api/people"), row.roles === null ? "own" : "all"]),
  );
}

function nameOf({ method, path }: Pick<RightsRow, "method" | "path">, base = ""): string {
  return `${method} ${base}${path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}")}`;
}
