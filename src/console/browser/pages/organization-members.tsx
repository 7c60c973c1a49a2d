import { useState } from "preact/hooks";
import type { Member } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Panel, Button } from "../ui/basics.tsx";
import { Confirm, FormDialog, Input, useTyped } from "../ui/dialog.tsx";
import { KeySecret } from "../ui/secret.tsx";
import { RoleField } from "../ui/role-field.tsx";
import type { Role } from "../ui/role-field.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import { column, timeColumn, verbsColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/orgs"];
type Doing =
  | { readonly what: "add" }
  | { readonly what: "role" | "remove" | "key"; readonly member: Member };
type Props = { readonly id: string; readonly member: Member; readonly onClose: () => void };

const MEMBERS: readonly Column<Member>[] = [
  column("email", "Address", ({ email }) => email),
  column("role", "Role", ({ role }) => role),
  timeColumn("since", "Created", ({ created_at }) => created_at, { wide: true }),
];
const VERBS = [
  ["key", "New key…", "POST /admin/v1/orgs/{id}/members/{member_id}/keys"],
  ["role", "Role…", "PATCH /admin/v1/orgs/{id}/members/{member_id}"],
  ["remove", "Remove…", "DELETE /admin/v1/orgs/{id}/members/{member_id}"],
] as const;

export function Members({ id }: { id: string }) {
  const may = useMay();
  const verbs = VERBS.filter(([, , call]) => may(call));
  const [doing, setDoing] = useState<Doing | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/members", { path: { id } });
  const close = (): void => setDoing(null);
  const columns: readonly Column<Member>[] = [
    ...MEMBERS,
    verbsColumn(verbs, (what, member) => setDoing({ what, member })),
  ];
  return (
    <Panel
      title="Members"
      aside={
        may("POST /admin/v1/orgs/{id}/members") && (
          <Button text="Add member…" onClick={() => setDoing({ what: "add" })} />
        )
      }
    >
      <ReadResult read={read} height={108}>
        {({ members }) => (
          <Grid
            name="Members"
            columns={verbs.length > 0 ? columns : MEMBERS}
            rows={members}
            keyOf={(member) => member.id}
          />
        )}
      </ReadResult>
      {doing?.what === "add" && <AddMember id={id} onClose={close} />}
      {doing?.what === "role" && <ChangeRole id={id} member={doing.member} onClose={close} />}
      {doing?.what === "remove" && <RemoveMember id={id} member={doing.member} onClose={close} />}
      {doing?.what === "key" && <MemberKeyForm id={id} member={doing.member} onClose={close} />}
    </Panel>
  );
}

function AddMember({ id, onClose }: Omit<Props, "member">) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  return (
    <FormDialog
      title="Add a member"
      verb="Add member"
      run={() => {
        const body = { email: email.trim(), role };
        return change("POST /admin/v1/orgs/{id}/members", { path: { id }, body }, TOUCHES);
      }}
      onClose={onClose}
    >
      <Input label="Address" param="email" required autofocus value={email} onText={setEmail} />
      <RoleField role={role} onChange={setRole} />
    </FormDialog>
  );
}

function ChangeRole({ id, member, onClose }: Props) {
  const [role, setRole] = useState<Role>(member.role);
  const path = { id, member_id: member.id };
  return (
    <FormDialog
      title={`Role of ${member.email}`}
      verb="Change role"
      run={() =>
        change("PATCH /admin/v1/orgs/{id}/members/{member_id}", { path, body: { role } }, TOUCHES)
      }
      onClose={onClose}
    >
      <RoleField role={role} onChange={setRole} />
    </FormDialog>
  );
}

function RemoveMember({ id, member, onClose }: Props) {
  const path = { id, member_id: member.id };
  return (
    <Confirm
      title={`Remove ${member.email}?`}
      verb="Remove member"
      run={() => change("DELETE /admin/v1/orgs/{id}/members/{member_id}", { path }, TOUCHES)}
      onClose={onClose}
    >
      <p>All its keys are revoked and its sessions end immediately, in every region.</p>
    </Confirm>
  );
}

function MemberKeyForm({ id, member, onClose }: Props) {
  const [{ name }, line] = useTyped({ name: "" });
  const [made, setMade] = useState<{ readonly name: string; readonly key: string } | null>(null);
  const path = { id, member_id: member.id };
  if (made) return <KeySecret name={made.name} secret={made.key} onClose={onClose} />;
  return (
    <FormDialog
      title={`New key of ${member.email}`}
      verb="Create key"
      run={() => {
        const body = { name: name.trim() };
        const call = "POST /admin/v1/orgs/{id}/members/{member_id}/keys";
        return change(call, { path, body }, TOUCHES);
      }}
      onDone={setMade}
      onClose={onClose}
    >
      {line("name", "Name", { required: true, autofocus: true, maxLength: 100 })}
    </FormDialog>
  );
}
