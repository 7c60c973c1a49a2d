import type { Role } from "../../shared/caller.ts";

/** Which roles each role may give: nobody raises another above himself. */
const GIVES: Readonly<Record<Role, readonly Role[]>> = {
  owner: ["owner", "admin", "billing", "member"],
  admin: ["admin", "billing", "member"],
  billing: [],
  member: [],
};

/** Whether who has the role `by` may invite as `role`. */
export function canGrantRole(by: Role, role: Role): boolean {
  return GIVES[by].includes(role);
}

/**
 * The same in a statement: whether the role in the column `by` gives the role in the column `role`. A rule that was read
 * before the statement may have changed since.
 */
export function grantsRoleSql(by: string, role: string): string {
  return `(${by} = 'owner' OR (${by} = 'admin' AND ${role} <> 'owner'))`;
}
