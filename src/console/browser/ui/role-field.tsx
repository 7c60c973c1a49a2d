import { Select } from "./dialog.tsx";

export const ROLES = ["member", "billing", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];
const OPTIONS = ROLES.map((role) => [role, role] as const);

export function RoleField({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  return <Select label="Role" param="role" value={role} options={OPTIONS} onPick={onChange} />;
}
