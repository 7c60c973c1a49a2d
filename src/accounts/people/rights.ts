import type { Role } from "../../shared/caller.ts";

const GIVES: Readonly<Record<Role, readonly Role[]>> = {
  owner: ["owner", "admin", "billing", "member"],
  admin: ["admin", "billing", "member"],
  billing: [],
  member: [],
};

export function canGrantRole(by: Role, role: Role): boolean {
  return GIVES[by].includes(role);
}

/**
 * Returns the same rule as an SQL condition, because the result of an earlier check can be
 * outdated.
 */
export function canGrantRoleSql(by: string, role: string): string {
  return `(${by} = 'owner' OR (${by} = 'admin' AND ${role} <> 'owner'))`;
}
