import type { OperatorRole } from "../shared/config/config.ts";
import type { Role } from "../shared/caller.ts";
import type { KeyRoute, PeopleRoute, Route } from "../shared/http/route.ts";

/**
 * A session's identity, which determines its allowed calls. `role` is null without an organization.
 */
export type SessionIdentity =
  | { readonly kind: "key"; readonly role: Role; readonly isLimited: boolean }
  | { readonly kind: "person"; readonly role: Role | null }
  | { readonly kind: "operator"; readonly role: OperatorRole }
  | { readonly kind: "viewer" };
type Identity<Kind> = Extract<SessionIdentity, { readonly kind: Kind }>;
/**
 * Allowed calls by name, such as `GET /v1/keys/{id}`. `own` allows only the member's own objects.
 */
type AllowedCalls = Readonly<Record<string, "all" | "own">>;

/** Paths of the playground's paid calls, which count toward the key's limits. */
export const PLAYGROUND_PATHS: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
]);

/** Paths about the caller's key. Operators who view a customer have no key. */
export const OWN_KEY_PATHS: ReadonlySet<string> = new Set(["/v1/key", "/v1/auth/key"]);

export function listAllowedCalls(rows: readonly Route[], identity: SessionIdentity): AllowedCalls {
  const allowed = rows.flatMap((row) => {
    const access = accessOf(row, identity);
    return access === null ? [] : [[callNameOf(row), access] as const];
  });
  return Object.fromEntries(allowed);
}

/** Returns the objects that a call can affect: "all", only the caller's "own", or null for none. */
function accessOf(row: Route, identity: SessionIdentity): "all" | "own" | null {
  if (row.reach === "operators") {
    return identity.kind === "operator" && row.roles.includes(identity.role) ? "all" : null;
  }
  if (row.reach === "people") {
    return identity.kind === "person" ? accessOfPerson(row, identity) : null;
  }
  return identity.kind === "operator" || isHidden(row, identity)
    ? null
    : accessOfMember(row, identity);
}

function accessOfPerson(
  { roles }: PeopleRoute,
  { role }: Identity<"person">,
): "all" | "own" | null {
  if (roles === null) return "own";
  return role !== null && roles.includes(role) ? "all" : null;
}

function accessOfMember(
  { roles, others }: KeyRoute,
  identity: Identity<"key" | "person" | "viewer">,
): "all" | "own" | null {
  const role = identity.kind === "viewer" ? "owner" : identity.role;
  if (role === null || !roles.includes(role)) return null;
  return (others ?? [role]).includes(role) ? "all" : "own";
}

function isHidden({ method, path, reach }: KeyRoute, identity: SessionIdentity): boolean {
  if (identity.kind === "viewer") return method !== "GET" || OWN_KEY_PATHS.has(path);
  if (identity.kind === "key" && identity.isLimited && reach === "managed") return true;
  const isModelCall = method === "POST" && (reach === "paid" || reach === "here");
  return isModelCall && !PLAYGROUND_PATHS.has(path);
}

function callNameOf({ method, path }: Route): string {
  return `${method} ${path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}")}`;
}
