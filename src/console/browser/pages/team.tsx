import { useState } from "preact/hooks";
import type { Invitation, MadeInvitation, TeamMember } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { endSession, isViewingCustomer, canMakeCall, useSession } from "../state/session.ts";
import { Badge, PageHead, Panel, Button } from "../ui/basics.tsx";
import { Confirm, FormDialog, useTyped, Dialog, ROLES, RoleField } from "../ui/dialog.tsx";
import type { Role } from "../ui/dialog.tsx";
import { Company } from "./company.tsx";
import { SecretDialog } from "../ui/secret.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid, column, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { Budgets } from "../ui/budgets.tsx";
import { PolicyPart } from "../ui/policy.tsx";

const TOUCHES = ["/people"];
const MEMBERS = ["/v1/members"];

const LIST = "GET /console/api/people/members";

export function Team() {
  const who = useSession();
  if (isViewingCustomer(who)) {
    return (
      <PageHead title="Team" text="Leave this view to see the members on the customer's page." />
    );
  }
  return canMakeCall(who, LIST) ? <Members /> : <OwnAccountOnly name={who.key?.name ?? ""} />;
}

function OwnAccountOnly({ name }: { name: string }) {
  return (
    <>
      <PageHead title="Team" text="Members, their roles and open invitations." />
      <p>
        This session uses the key {name}. To see members and invite people, log out, then log in
        with your own account.
      </p>
      <p>
        If you have no account, ask an owner, an admin or the operator of this region for an
        invitation. <a href="/docs/use/people#a-team">About teams</a>
      </p>
    </>
  );
}

function Members() {
  const who = useSession();
  const manages = canMakeCall(who, "POST /console/api/people/invitations");
  const [inviting, setInviting] = useState(false);
  const [removing, setRemoving] = useState<TeamMember | null>(null);
  const [limited, setLimited] = useState<TeamMember | null>(null);
  const onLimit = canMakeCall(who, CHANGE_MEMBER) ? setLimited : null;
  const read = useRead(LIST, {});
  const columns = columnsOf(manages, who.member?.id ?? "", { onRemove: setRemoving, onLimit });
  return (
    <>
      <PageHead title="Team" text="Members, their roles and open invitations.">
        {manages && <Button text="Invite" class="primary" onClick={() => setInviting(true)} />}
      </PageHead>
      <ReadResult read={read} height={200}>
        {({ members }) => (
          <Grid name="Members" columns={columns} rows={members} keyOf={({ id }) => id} />
        )}
      </ReadResult>
      {manages && <Invitations />}
      {canMakeCall(who, "POST /console/api/people/company/domains") &&
        who.organization?.is_personal === false && <Company />}
      {limited && (
        <MemberLimits
          member={limited}
          title={`Limits of ${nameOf(limited)}`}
          onClose={() => setLimited(null)}
        />
      )}
      {inviting && <Invite onClose={() => setInviting(false)} />}
      {removing && (
        <Confirm
          title={`Remove ${nameOf(removing)}?`}
          verb={`Remove ${nameOf(removing)}`}
          run={() =>
            change(
              "DELETE /console/api/people/members/{id}",
              { path: { id: removing.id } },
              TOUCHES,
            )
          }
          onClose={() => setRemoving(null)}
          onDone={() => {
            setRemoving(null);
            if (removing.id === who.member?.id) endSession("You left the organization.");
          }}
        >
          <p>
            This ends every session and revokes {removing.keys}{" "}
            {removing.keys === 1 ? "key" : "keys"} of this member immediately. Running requests
            finish and are charged.
          </p>
        </Confirm>
      )}
    </>
  );
}

const nameOf = ({ name, email }: TeamMember): string => name ?? email ?? "this member";

function columnsOf(
  manages: boolean,
  own: string,
  {
    onRemove,
    onLimit,
  }: {
    readonly onRemove: (member: TeamMember) => void;
    readonly onLimit: ((member: TeamMember) => void) | null;
  },
): readonly Column<TeamMember>[] {
  return [
    column("name", "Name", nameOf, {
      cell: (member) => (
        <span>
          {nameOf(member)} {member.id === own && <Badge>you</Badge>}
        </span>
      ),
    }),
    column("email", "Address", ({ email }) => email ?? "", { wide: true }),
    column("role", "Role", ({ role }) => role, {
      cell: (member) => (manages ? <RoleOf member={member} /> : member.role),
    }),
    column("ways", "Can log in", ({ logs_in }) => (logs_in ? "yes" : "API keys only"), {
      wide: true,
    }),
    column("keys", "Keys", ({ keys }) => keys, { align: "right" }),
    timeColumn("seen", "Last seen", ({ last_seen_at }) => last_seen_at, { wide: true }),
    column("do", "", () => "", {
      cell: (member) => (
        <>
          {onLimit && <Button text="Limits…" class="quiet" onClick={() => onLimit(member)} />}
          {(manages || member.id === own) && (
            <Button
              text={member.id === own ? "Leave…" : "Remove…"}
              class="quiet"
              onClick={() => onRemove(member)}
            />
          )}
        </>
      ),
    }),
  ];
}

function RoleOf({ member }: { member: TeamMember }) {
  const [failed, setFailed] = useState("");
  const set = async (role: Role): Promise<void> => {
    const filling = { path: { id: member.id }, body: { role } };
    const done = await change("PATCH /console/api/people/members/{id}", filling, TOUCHES);
    setFailed(done.ok ? "" : done.failure.message);
  };
  return (
    <span>
      <select
        aria-label={`Role of ${nameOf(member)}`}
        value={member.role}
        onChange={({ currentTarget }) => void set(currentTarget.value as Role)}
      >
        {ROLES.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      {failed !== "" && <span class="small bad-text"> ■ {failed}</span>}
    </span>
  );
}

function Invitations() {
  const read = useRead("GET /console/api/people/invitations", {});
  const columns: readonly Column<Invitation>[] = [
    column("email", "For", ({ email }) => email ?? "Anyone with the link"),
    column("role", "As", ({ role }) => role),
    timeColumn("until", "Until", ({ expires_at }) => expires_at),
    column("do", "", () => "", {
      cell: ({ id }) => (
        <Button
          text="Cancel invitation"
          class="quiet"
          onClick={() =>
            void change("DELETE /console/api/people/invitations/{id}", { path: { id } }, TOUCHES)
          }
        />
      ),
    }),
  ];
  return (
    <Panel title="Invitations">
      <ReadResult read={read} height={108}>
        {({ invitations }) => (
          <Grid name="Invitations" columns={columns} rows={invitations} keyOf={({ id }) => id} />
        )}
      </ReadResult>
    </Panel>
  );
}

function Invite({ onClose }: { onClose: () => void }) {
  const { organization } = useSession();
  const [typed, line] = useTyped({ email: "" });
  const email = typed.email.trim();
  const [role, setRole] = useState<Role>("member");
  const [made, setMade] = useState<MadeInvitation | null>(null);
  if (made !== null) {
    const whose = made.email === null ? "" : `, only for ${made.email}`;
    const how = made.mailed ? "The link was also emailed" : "Send the link yourself";
    const note = `${how}. It works once${whose}.`;
    return (
      <SecretDialog
        title="Invitation link"
        noun="link"
        secret={made.link}
        note={note}
        uses={[]}
        onClose={onClose}
      />
    );
  }
  const run = async () => {
    if (organization?.is_personal === true) {
      const team = await change("POST /console/api/people/organization/team", {}, TOUCHES);
      if (!team.ok) return team;
    }
    const body = { role, ...(email !== "" && { email }) };
    return change("POST /console/api/people/invitations", { body }, TOUCHES);
  };
  return (
    <FormDialog
      title="Invite"
      verb="Create invitation"
      run={run}
      onDone={(done) => "link" in done && setMade(done)}
      onClose={onClose}
    >
      {organization?.is_personal === true && (
        <p>
          This is your personal organization. An invitation turns it into a team. You can't undo
          this.
        </p>
      )}
      {line("email", "Address", {
        hint: "If empty, anyone with the link can join",
        type: "email",
      })}
      <RoleField role={role} onChange={setRole} />
    </FormDialog>
  );
}

const CHANGE_MEMBER = "PATCH /v1/members/{id}";

type MemberLimitsProps = { member: TeamMember; title: string; onClose: () => void };
function MemberLimits({ member: { id }, title, onClose }: MemberLimitsProps) {
  const path = { id };
  const read = useRead("GET /v1/members/{id}", { path }, { every: 10_000 });
  return (
    <Dialog title={title} onClose={onClose} wide>
      <ReadResult read={read} height={240}>
        {({ budgets, policy }) => (
          <>
            <p>These limits apply to all keys of this member together.</p>
            <h3>Budgets</h3>
            <Budgets
              budgets={budgets}
              save={(list) => change(CHANGE_MEMBER, { path, body: { budgets: list } }, MEMBERS)}
            />
            <h3>Policy</h3>
            <PolicyPart
              policy={policy}
              save={(one) => change(CHANGE_MEMBER, { path, body: { policy: one } }, MEMBERS)}
            />
          </>
        )}
      </ReadResult>
    </Dialog>
  );
}
