import { useState } from "preact/hooks";
import type { CallOutcome } from "../api/client.ts";
import type { Me, Notifications as Choice } from "../api/types.ts";
import { useLoginMethods, startLogIn } from "../api/people.ts";
import { callWithConfirmation } from "../state/confirming.ts";
import { change, handleFailure, latestOf, readWithoutCache, useRead } from "../state/reads.ts";
import { endSession, loadSession, session, useCanMakeCall } from "../state/session.ts";
import { Badge, Facts, PageHead, Money, Panel, Time, Button, Checkbox } from "../ui/basics.tsx";
import { Action, Confirm, FormDialog, useTyped, Form } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";

const TOUCHES = ["/people"];

export function Profile() {
  const read = useRead("GET /console/api/people/me", {});
  const [doing, setDoing] = useState<"organization" | "delete" | null>(null);
  const close = (): void => setDoing(null);
  const known = latestOf(read);
  return (
    <>
      <PageHead title="Profile" text="Your account in this region.">
        <Action
          verb="Export"
          run={() => readWithoutCache("GET /console/api/people/me/export", {})}
          onDone={saveExport}
        />
        <Button text="Delete account…" class="danger" onClick={() => setDoing("delete")} />
      </PageHead>
      <ReadResult read={read} height={300}>
        {(me) => (
          <>
            <Facts
              inPanel
              facts={[
                ["Name", me.person.name],
                ["Address", me.person.email],
                ["Login methods", me.identities.map(({ issuer }) => issuer).join(", ")],
              ]}
            />
            <Organizations me={me} onNew={() => setDoing("organization")} />
            <Notifications />
            <Sessions me={me} />
          </>
        )}
      </ReadResult>
      {doing === "organization" && <NewOrganization onClose={close} />}
      {doing === "delete" && known && <DeleteAccount me={known} onClose={close} />}
    </>
  );
}

function DeleteAccount({ me, onClose }: { me: Me; onClose: () => void }) {
  const [givesUp, setGivesUp] = useState(false);
  const current = session.get()?.organization;
  const balance = latestOf(useRead(current ? "GET /v1/balance" : null, {}));
  return (
    <Confirm
      title="Delete your account in this region?"
      verb="Delete account"
      run={() =>
        change("DELETE /console/api/people/me", { body: { give_up_balance: givesUp } }, [])
      }
      onClose={onClose}
      onDone={() => endSession("Your account in this region is deleted.")}
    >
      <p>
        You will leave these organizations. Those without other members are closed and lose their
        credits. Receipts are kept without your name. You can't undo this.
      </p>
      <ul>
        {me.organizations.map(({ id, name, role }) => (
          <li key={id}>
            <strong>{name}</strong> ({role})
            {id === current?.id && balance && (
              <>
                : <Money micros={balance.credits_micro} kind="left" /> of credits
              </>
            )}
          </li>
        ))}
      </ul>
      <Checkbox
        text="Give up the credits of closed organizations"
        isOn={givesUp}
        onChange={setGivesUp}
      />
    </Confirm>
  );
}

function saveExport(exported: object): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(exported, null, 2)]));
  Object.assign(document.createElement("a"), { href: url, download: "me.json" }).click();
  URL.revokeObjectURL(url);
}

/** Reloads the session after its organization changed, and hides the earlier data. */
function reloadSession(): void {
  session.set(undefined);
  void loadSession();
}

function Organizations({ me, onNew }: { me: Me; onNew: () => void }) {
  const loginMethods = useLoginMethods();
  const current = session.get()?.organization?.id;
  return (
    <Panel title="Organizations" aside={<Button text="New organization" onClick={onNew} />}>
      {me.organizations.map((one) => (
        <p key={one.id}>
          <strong>{one.name}</strong> <Badge>{one.role}</Badge>{" "}
          {one.is_personal && <Badge>personal</Badge>}{" "}
          {one.id === current ? (
            <span class="muted">shown now</span>
          ) : (
            <Action
              tone="quiet"
              verb={`Switch to ${one.name}`}
              run={() =>
                change("POST /console/api/people/me/act", { body: { organization_id: one.id } }, [])
              }
              onDone={reloadSession}
            />
          )}
        </p>
      ))}
      {me.closed_organizations.map(({ id, name, restorable_until: until }) => (
        <p key={id}>
          <strong>{name}</strong> <Badge tone="warn">closed</Badge> can be restored until{" "}
          <Time at={until} />{" "}
          <Action
            verb={`Restore ${name}`}
            run={() =>
              change("POST /console/api/people/organizations/{id}/restore", { path: { id } }, [])
            }
            onDone={reloadSession}
          />
        </p>
      ))}
      {loginMethods?.regions.map(({ region, console: href }) => (
        <p key={region} class="small">
          In the {region.toUpperCase()}: <a href={href}>look there</a>
        </p>
      ))}
      {loginMethods?.issuers.map(({ id, name }) => (
        <Button key={id} text={`Connect ${name}`} class="quiet" onClick={() => void connect(id)} />
      ))}
    </Panel>
  );
}

async function connect(issuer: string): Promise<void> {
  const link = (): Promise<CallOutcome<unknown>> => startLogIn("link", { issuer, go: "#/profile" });
  const started = await callWithConfirmation("link", link);
  if (!started.ok) handleFailure(started.failure);
}

function Sessions({ me }: { me: Me }) {
  return (
    <Panel
      title="Sessions"
      aside={
        <Action
          verb="Log out everywhere"
          run={() => change("POST /console/api/people/me/log-out", {}, [])}
          onDone={() => endSession("You are logged out everywhere.")}
        />
      }
    >
      {me.sessions.map((one) => (
        <p key={one.id}>
          {one.browser}, since <Time at={one.created_at} />{" "}
          {one.is_this ? (
            <Badge tone="good">this one</Badge>
          ) : (
            <Action
              tone="quiet"
              verb="End"
              run={() =>
                change(
                  "DELETE /console/api/people/me/sessions/{id}",
                  { path: { id: one.id } },
                  TOUCHES,
                )
              }
            />
          )}
        </p>
      ))}
    </Panel>
  );
}

function NewOrganization({ onClose }: { onClose: () => void }) {
  const [body, line] = useTyped({ name: "" });
  return (
    <FormDialog
      title="New organization"
      verb="Create organization"
      run={() => change("POST /console/api/people/organizations", { body }, TOUCHES)}
      onDone={reloadSession}
      onClose={onClose}
    >
      {line("name", "Name", { required: true })}
    </FormDialog>
  );
}

type NotifiedType = Choice["types"][number];
const LABELS: Readonly<Record<NotifiedType, string>> = {
  "balance.low": "Low balance",
  "key.budget_reached": "A key's budget is used up",
  "webhook.disabled": "A webhook is disabled",
  "top_up.paused": "Automatic top-up failed",
  "top_up.disabled": "Automatic top-up is disabled",
};

const CHOOSE = "PATCH /console/api/people/notifications";

function Notifications() {
  const mayChoose = useCanMakeCall()(CHOOSE);
  const read = useRead(mayChoose ? "GET /console/api/people/notifications" : null);
  return (
    mayChoose && (
      <Panel title="Email notifications">
        <ReadResult read={read} height={200}>
          {(known) => <ChoiceForm key={known.types.join()} known={known} />}
        </ReadResult>
      </Panel>
    )
  );
}

function ChoiceForm({ known }: { known: Choice }) {
  const [types, setTypes] = useState(known.types);
  const choose = (type: NotifiedType, on: boolean): void =>
    setTypes([...types.filter((one) => one !== type), ...(on ? [type] : [])]);
  return (
    <Form verb="Save" run={() => change(CHOOSE, { body: { types } }, [])}>
      <p class="small muted">{addressText(known)}</p>
      {known.available_types.map((type) => (
        <p key={type}>
          <Checkbox
            text={LABELS[type]}
            isOn={types.includes(type)}
            onChange={(isOn) => choose(type, isOn)}
          />
        </p>
      ))}
    </Form>
  );
}

function addressText({ email, is_available: isAvailable }: Choice): string {
  if (!isAvailable) return "This region doesn't send email. Your choice is kept.";
  if (email === null) return "Your address isn't confirmed, so no email is sent.";
  return `Sent to ${email}, about this organization.`;
}
