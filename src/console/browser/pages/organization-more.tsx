import { selectChangedFields } from "../lib/form-fields.ts";
import { useState } from "preact/hooks";
import type { Event, OrganizationAndMoney, Member } from "../api/types.ts";
import { describeActor, describeEvent } from "../lib/event-sentence.ts";
import type { NameOf } from "../lib/event-sentence.ts";
import { DAY_MS, utcDay } from "../lib/time.ts";
import { change, latestOf, useRead } from "../state/reads.ts";
import { useSession, useCanMakeCall } from "../state/session.ts";
import { Count, Money, Panel, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { COUNT_FIELD, FormDialog, useTyped, Confirm, Input, RoleField } from "../ui/dialog.tsx";
import type { Role } from "../ui/dialog.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Grid, column, countColumn, moneyColumn, timeColumn, verbColumns } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { KeySecret } from "../ui/secret.tsx";

const EVENTS_SHOWN = 20;

export function OrganizationUsage({ id }: { id: string }) {
  const now = useNow();
  const query = { from: utcDay(now - 29 * DAY_MS), to: utcDay(now), group_by: "model" } as const;
  const read = useRead("GET /admin/v1/orgs/{id}/usage", { path: { id }, query });
  return (
    <Panel title="Usage by model, last 30 days">
      <ReadResult read={read} height={108}>
        {({ data, total }) =>
          data.length === 0 ? (
            <Empty text="No requests in the last 30 days." />
          ) : (
            <>
              <p class="small">
                <Money micros={total.cost_micro} /> in <Count count={total.requests} /> requests.
              </p>
              <Grid
                name="Usage by model"
                columns={USAGE}
                rows={data.toSorted((a, b) => b.cost_micro - a.cost_micro).slice(0, 20)}
                keyOf={({ group }) => group ?? ""}
              />
            </>
          )
        }
      </ReadResult>
    </Panel>
  );
}

type UsageRow = {
  readonly group: string | null;
  readonly requests: number;
  readonly cost_micro: number;
};
const USAGE: readonly Column<UsageRow>[] = [
  column("model", "Model", ({ group }) => group),
  moneyColumn("spend", "Spend", ({ cost_micro }) => cost_micro),
  countColumn("requests", "Requests", ({ requests }) => requests),
];

export function OrganizationEvents({ id }: { id: string }) {
  const query = { limit: EVENTS_SHOWN };
  const read = useRead("GET /admin/v1/orgs/{id}/events", { path: { id }, query });
  const nameOf = useNamesIn(id);
  return (
    <Panel title={`Newest ${EVENTS_SHOWN} events`}>
      <ReadResult read={read} height={200}>
        {({ events }) => (
          <Grid
            name="Events"
            columns={eventColumns(nameOf)}
            rows={events}
            keyOf={(event: Event) => event.id}
          />
        )}
      </ReadResult>
    </Panel>
  );
}

function useNamesIn(id: string): NameOf {
  const path = { id };
  const one = latestOf(useRead("GET /admin/v1/orgs/{id}", { path }));
  const members = latestOf(useRead("GET /admin/v1/orgs/{id}/members", { path }))?.members;
  const keys = latestOf(useRead("GET /admin/v1/orgs/{id}/keys", { path }))?.keys;
  const names = new Map([
    ...(one ? [[id, one.name] as const] : []),
    ...(members ?? []).map((member) => [member.id, member.email] as const),
    ...(keys ?? []).map((key) => [key.id, key.name] as const),
  ]);
  return (object) => names.get(object) ?? object;
}

function eventColumns(nameOf: NameOf): readonly Column<Event>[] {
  return [
    timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
    column("what", "What", (event) => describeEvent(event, nameOf)),
    column("actor", "Actor", ({ actor }) => describeActor(actor, nameOf), { wide: true }),
  ];
}

const typedOf = (one: OrganizationAndMoney) => ({
  name: one.name,
  slug: one.slug,
  rpm_limit: String(one.rpm_limit ?? ""),
  price_list: one.price_list ?? "",
});
type Typed = ReturnType<typeof typedOf>;

const bodyOf = ({ name, slug, rpm_limit, price_list }: Typed) => ({
  name: name.trim(),
  slug: slug.trim(),
  rpm_limit: rpm_limit === "" ? null : Number(rpm_limit),
  price_list: price_list.trim() || null,
});

type ChangeOrganizationProps = { one: OrganizationAndMoney; onClose: () => void };
export function ChangeOrganization({ one, onClose }: ChangeOrganizationProps) {
  const { operator } = useSession(); // prices need the role finance, other fields support
  const [found] = useState(() => typedOf(one)); // the values when the form opened
  const [typed, line] = useTyped(found);
  return (
    <FormDialog
      title={`Change ${one.name}`}
      verb="Save"
      run={() => {
        const body = selectChangedFields(bodyOf(found), bodyOf(typed));
        return change("PATCH /admin/v1/orgs/{id}", { path: { id: one.id }, body }, [
          "/admin/v1/orgs",
        ]);
      }}
      onClose={onClose}
    >
      {operator !== "finance" && (
        <>
          {line("name", "Name", { required: true })}
          {line("slug", "Slug", { required: true })}
          {line("rpm_limit", "Rate limit, per 60 s", {
            ...COUNT_FIELD,
            hint: "For all keys together; empty: unlimited",
          })}
        </>
      )}
      {operator !== "support" &&
        line("price_list", "Price list", {
          hint: "A price list's name from Business; empty: the region's prices",
        })}
    </FormDialog>
  );
}

const TOUCHES = ["/admin/v1/orgs"];
type Doing =
  | { readonly what: "add" }
  | { readonly what: "role" | "remove" | "key"; readonly member: Member };
type MemberProps = { readonly id: string; readonly member: Member; readonly onClose: () => void };

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
  const may = useCanMakeCall();
  const [doing, setDoing] = useState<Doing | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/members", { path: { id } });
  const close = (): void => setDoing(null);
  const columns: readonly Column<Member>[] = [
    ...MEMBERS,
    ...verbColumns(
      VERBS.filter(([, , call]) => may(call)),
      (what, member: Member) => setDoing({ what, member }),
    ),
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
          <Grid name="Members" columns={columns} rows={members} keyOf={({ id: one }) => one} />
        )}
      </ReadResult>
      {doing?.what === "add" && <AddMember id={id} onClose={close} />}
      {doing?.what === "role" && <ChangeRole id={id} member={doing.member} onClose={close} />}
      {doing?.what === "remove" && <RemoveMember id={id} member={doing.member} onClose={close} />}
      {doing?.what === "key" && <MemberKeyForm id={id} member={doing.member} onClose={close} />}
    </Panel>
  );
}

function AddMember({ id, onClose }: Omit<MemberProps, "member">) {
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

function ChangeRole({ id, member, onClose }: MemberProps) {
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

function RemoveMember({ id, member, onClose }: MemberProps) {
  const path = { id, member_id: member.id };
  return (
    <Confirm
      title={`Remove ${member.email}?`}
      verb="Remove member"
      run={() => change("DELETE /admin/v1/orgs/{id}/members/{member_id}", { path }, TOUCHES)}
      onClose={onClose}
    >
      <p>The member's keys are revoked and sessions end immediately, in every region.</p>
    </Confirm>
  );
}

function MemberKeyForm({ id, member, onClose }: MemberProps) {
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
