import type { Role } from "../../shared/caller.ts";

const GRANTABLE_ROLES: Readonly<Record<Role, readonly Role[]>> = {
  owner: ["owner", "admin", "billing", "member"],
  admin: ["admin", "billing", "member"],
  billing: [],
  member: [],
};

export function canGrantRole(by: Role, role: Role): boolean {
  return GRANTABLE_ROLES[by].includes(role);
}

/** Returns the rule of `canGrantRole` as an SQL condition, so that a write checks current roles. */
export function canGrantRoleSql(by: string, role: string): string {
  return `(${by} = 'owner' OR (${by} = 'admin' AND ${role} <> 'owner'))`;
}
