import { useState } from "preact/hooks";
import type { CompanyDomain, MadeInvitation, Session } from "../api/types.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { usePathSegments } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Badge, Panel, Time, Button } from "../ui/basics.tsx";
import { Action, Confirm, Dialog, FormDialog, Input, useTyped, RoleField } from "../ui/dialog.tsx";
import type { Role } from "../ui/dialog.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Grid, Table, actionsColumn, column, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/orgs"];
type OrganizationProps = { readonly id: string };
type Closing = OrganizationProps & { readonly onClose: () => void };

export function Access() {
  const [, id = ""] = usePathSegments();
  return (
    <>
      <Invitations id={id} />
      <Domains id={id} />
      <Sessions id={id} />
    </>
  );
}

function Invitations({ id }: OrganizationProps) {
  const may = useCanMakeCall();
  const [doing, setDoing] = useState<"invite" | "end" | null>(null);
  const close = (): void => setDoing(null);
  return (
    <Panel
      title="Invitations"
      aside={
        <>
          {may("POST /admin/v1/orgs/{id}/invitations") && (
            <Button text="Invite…" onClick={() => setDoing("invite")} />
          )}{" "}
          {may("DELETE /admin/v1/orgs/{id}/invitations/{invitation_id}") && (
            <Button text="Cancel invitation…" onClick={() => setDoing("end")} />
          )}
        </>
      }
    >
      <p class="muted">
        Owners see open invitations under Team. Events contain the invitation IDs.
      </p>
      {doing === "invite" && <Invite id={id} onClose={close} />}
      {doing === "end" && <EndInvitation id={id} onClose={close} />}
    </Panel>
  );
}

function Invite({ id, onClose }: Closing) {
  const [typed, line] = useTyped({ email: "" });
  const email = typed.email.trim();
  const [role, setRole] = useState<Role>("owner");
  const [made, setMade] = useState<MadeInvitation | null>(null);
  if (made) {
    return (
      <Dialog title="Invited" onClose={onClose} asks={false}>
        <p role="status">
          {made.mailed ? `Sent to ${made.email}. ` : ""}Anyone who opens this link becomes{" "}
          {made.role} until <Time at={made.expires_at} />. It is only shown once.
        </p>
        <pre class="code" tabIndex={0} aria-label="The link">
          {made.link}
        </pre>
        <p class="small muted">
          Invitation <code>{made.id}</code>
        </p>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Invite somebody"
      verb="Invite"
      run={() => {
        const body = { role, ...(email !== "" && { email }) };
        return change("POST /admin/v1/orgs/{id}/invitations", { path: { id }, body }, TOUCHES);
      }}
      onDone={setMade}
      onClose={onClose}
    >
      {line("email", "Email address (if empty, anyone can use the link)")}
      <RoleField role={role} onChange={setRole} />
    </FormDialog>
  );
}

function EndInvitation({ id, onClose }: Closing) {
  const [named, setNamed] = useState("");
  return (
    <FormDialog
      title="Cancel invitation"
      verb="Cancel invitation"
      run={() => {
        const path = { id, invitation_id: named.trim() };
        const call = "DELETE /admin/v1/orgs/{id}/invitations/{invitation_id}";
        return change(call, { path }, TOUCHES);
      }}
      onClose={onClose}
    >
      <Input label="Invitation ID" param="invitation_id" required value={named} onText={setNamed} />
    </FormDialog>
  );
}

function Domains({ id }: OrganizationProps) {
  const may = useCanMakeCall();
  const mayApprove = may("POST /admin/v1/orgs/{id}/domains/{domain}/approve");
  const read = useRead("GET /admin/v1/orgs/{id}/domains", { path: { id } });
  const [removing, setRemoving] = useState(false);
  const columns: readonly Column<CompanyDomain>[] = [
    ...DOMAINS,
    actionsColumn(
      ({ domain, proven_at, approved }) =>
        mayApprove &&
        proven_at !== null &&
        !approved && (
          <Action
            tone="quiet"
            verb="Approve"
            run={() =>
              change(
                "POST /admin/v1/orgs/{id}/domains/{domain}/approve",
                { path: { id, domain } },
                TOUCHES,
              )
            }
          />
        ),
    ),
  ];
  return (
    <Panel
      title="Email domains"
      aside={
        latestOf(read)?.has_own_login === true &&
        may("DELETE /admin/v1/orgs/{id}/company-issuer") && (
          <Button text="Remove company login…" class="danger" onClick={() => setRemoving(true)} />
        )
      }
    >
      <ReadResult read={read} height={108}>
        {({ domains }) =>
          domains.length === 0 ? (
            <Empty text="No domains. People can't join by email address." />
          ) : (
            <Grid name="Domains" columns={columns} rows={domains} keyOf={({ domain }) => domain} />
          )
        }
      </ReadResult>
      {removing && (
        <Confirm
          title="Remove company login?"
          verb="Remove login"
          run={() => change("DELETE /admin/v1/orgs/{id}/company-issuer", { path: { id } }, TOUCHES)}
          onClose={() => setRemoving(false)}
        >
          <p>
            Use this if the company login is broken. The organization's members can then log in with
            any of their other accounts. Owners receive an email.
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

const DOMAINS: readonly Column<CompanyDomain>[] = [
  column("domain", "Domain", ({ domain }) => domain),
  timeColumn("proven", "Proven", ({ proven_at }) => proven_at, { none: "not yet" }),
  column("approved", "State", ({ approved }) => approved, {
    cell: ({ approved, lost_since: lost }) =>
      lost === null ? (
        <Badge tone={approved ? "good" : "plain"}>{approved ? "approved" : "waits"}</Badge>
      ) : (
        <Badge tone="bad">
          lost since <Time at={lost} />
        </Badge>
      ),
  }),
];

function Sessions({ id }: OrganizationProps) {
  const mayEnd = useCanMakeCall()("DELETE /admin/v1/orgs/{id}/sessions/{session_id}");
  const [ending, setEnding] = useState<Session | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/sessions", { path: { id } });
  const done = (): void => setEnding(null);
  return (
    <Panel title="Sessions">
      <ReadResult read={read} height={108}>
        {({ sessions }) => (
          <Table
            name="Sessions"
            columns={SESSIONS}
            rows={sessions}
            keyOf={(one) => one.id}
            {...(mayEnd && { open: setEnding })}
            empty={<Empty text="No active sessions." />}
          />
        )}
      </ReadResult>
      {ending && (
        <Confirm
          title="End this session?"
          verb="End session"
          run={() => {
            const path = { id, session_id: ending.id };
            return change("DELETE /admin/v1/orgs/{id}/sessions/{session_id}", { path }, TOUCHES);
          }}
          onClose={done}
        >
          <p>
            Every region immediately rejects the session's token: <code>{ending.id}</code>.
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

const SESSIONS: readonly Column<Session>[] = [
  column("user", "End user", ({ end_user }) => end_user ?? "none"),
  column("key", "Key", ({ key_id }) => key_id, { wide: true }),
  column("spent", "Spent, $", ({ spent_dollars }) => spent_dollars, { align: "right" }),
  timeColumn("ends", "Ends", ({ expires_at }) => expires_at),
];
