import { useState } from "preact/hooks";
import type { Member } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Panel, Time } from "../ui/basics.tsx";
import { Confirm, Field, FormDialog } from "../ui/dialog.tsx";
import { KeySecret } from "../ui/secret.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/orgs"];
const ROLES = ["member", "billing", "admin", "owner"] as const;
type Role = (typeof ROLES)[number];
type Doing =
  | { readonly what: "add" }
  | { readonly what: "role" | "remove" | "key"; readonly member: Member };
type Props = { readonly id: string; readonly member: Member; readonly onClose: () => void };

const MEMBERS: readonly Column<Member>[] = [
  { id: "email", title: "Address", value: ({ email }) => email },
  { id: "role", title: "Role", value: ({ role }) => role },
  {
    id: "since",
    title: "Created",
    wide: true,
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} />,
  },
];
const VERBS = [
  ["key", "New key…", "POST /admin/v1/orgs/{id}/members/{member_id}/keys"],
  ["role", "Role…", "PATCH /admin/v1/orgs/{id}/members/{member_id}"],
  ["remove", "Remove…", "DELETE /admin/v1/orgs/{id}/members/{member_id}"],
] as const;

/** The members of an organization with actions. */
export function Members({ id }: { id: string }) {
  const may = useMay();
  const verbs = VERBS.filter(([, , call]) => may(call));
  const [doing, setDoing] = useState<Doing | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/members", { path: { id } });
  const close = (): void => setDoing(null);
  const columns: readonly Column<Member>[] = [
    ...MEMBERS,
    {
      id: "do",
      title: "To do",
      value: () => null,
      cell: (member) =>
        verbs.map(([what, text]) => (
          <button key={what} type="button" class="quiet" onClick={() => setDoing({ what, member })}>
            {text}
          </button>
        )),
    },
  ];
  return (
    <Panel
      title="Members"
      aside={
        may("POST /admin/v1/orgs/{id}/members") && (
          <button type="button" onClick={() => setDoing({ what: "add" })}>
            Add member…
          </button>
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
            isSorted={false}
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

function RoleField({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  return (
    <Field label="Role" param="role">
      <select
        value={role}
        onChange={({ currentTarget: { value } }) =>
          onChange(ROLES.find((one) => one === value) ?? "member")
        }
      >
        {ROLES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </Field>
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
      onDone={onClose}
      onClose={onClose}
    >
      <Field label="Address" param="email">
        <input
          required
          autofocus
          value={email}
          onInput={(event) => setEmail(event.currentTarget.value)}
        />
      </Field>
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
      onDone={onClose}
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
      onDone={onClose}
    >
      <p>All of its keys are revoked and its sessions end, in every region, at once.</p>
    </Confirm>
  );
}

/** Makes a member's key; the secret is shown once. */
function MemberKeyForm({ id, member, onClose }: Props) {
  const [name, setName] = useState("");
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
      <Field label="Name" param="name">
        <input
          required
          autofocus
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  );
}
