import { useEffect, useState } from "preact/hooks";
import { login, readSession } from "../api/client.ts";
import type { CallFailure } from "../api/client.ts";
import { lastIssuer, readLogIns, startLogIn } from "../api/people.ts";
import type { LogIns } from "../api/people.ts";
import type { Session } from "../api/session.ts";
import { WHY } from "../pages/login-methods.tsx";
import { useCell } from "../state/cell.ts";
import { confirming, tellConfirmed, watchConfirmed } from "../state/confirming.ts";
import type { Confirming } from "../state/confirming.ts";
import { route } from "../state/route.ts";
import { session, useSession } from "../state/session.ts";
import { Dialog, Form, Input } from "./dialog.tsx";
import { Failed } from "./states.tsx";

/** The dialog for a fresh login that a change needs. */
export function ConfirmLogin() {
  const asked = useCell(confirming);
  return asked && <ConfirmDialog {...asked} />;
}

function isSame(one: Session, other: Session): boolean {
  return idsOf(one) === idsOf(other);
}

function idsOf({ kind, operator, organization, person, key }: Session): string {
  return JSON.stringify([kind, operator, organization?.id, person?.id, key?.id]);
}

function ConfirmDialog({ change, finish }: Confirming) {
  const before = useSession();
  const take = (now: Session): void => {
    const isConfirmed = isSame(before, now);
    if (!isConfirmed) session.set(null); // show nothing of the first account to the second
    session.set(now);
    finish(isConfirmed);
  };
  return (
    <Dialog title="Confirm it's you" onClose={() => finish(false)} asks={false}>
      <p>Confirm it's you: {change} needs a login from the last ten minutes.</p>
      {before.kind !== "key" && <Providers onDone={take} />}
      {before.kind !== "person" && <Paste onDone={take} />}
    </Dialog>
  );
}

/** Logs in at an identity provider in a new tab, so this page keeps its forms. */
function Providers({ onDone }: { onDone: (now: Session) => void }) {
  const [ways, setWays] = useState<LogIns>();
  const [why, setWhy] = useState<string>();
  const [failure, setFailure] = useState<CallFailure>();
  const [flow] = useState(() => crypto.randomUUID());
  useEffect(() => void readLogIns().then((read) => read.ok && setWays(read.value)), []);
  useEffect(
    () =>
      watchConfirmed(flow, (failed) => {
        if (failed !== null) return setWhy(WHY[failed] ?? "That did not work. Try again.");
        void readSession().then((read) =>
          read.ok ? onDone(read.value) : setFailure(read.failure),
        );
      }),
    [flow],
  );
  const go = async (issuer: string): Promise<void> => {
    const tab = open("", "_blank"); // the browser allows opening a tab only during the click
    if (tab === null) return setWhy("The browser blocked the new tab. Allow it and try again.");
    const started = await startLogIn("step_up", { issuer, go: `#/confirmed?flow=${flow}` }, tab);
    if (started.ok) return;
    tab.close();
    setFailure(started.failure);
  };
  const ofCompany = lastIssuer() === "company" ? [{ id: "company", name: "your company" }] : [];
  return (
    <>
      {why !== undefined && (
        <p class="notice" role="alert">
          {why}
        </p>
      )}
      {failure && <Failed failure={failure} />}
      {[...ofCompany, ...(ways?.issuers ?? [])].map(({ id, name }) => (
        <p key={id}>
          <button type="button" class="primary" onClick={() => void go(id)}>
            Continue with {name}
          </button>
        </p>
      ))}
      <p class="small muted">This opens a new tab. Your form stays here.</p>
    </>
  );
}

function Paste({ onDone }: { onDone: (now: Session) => void }) {
  const [key, setKey] = useState("");
  return (
    <Form verb="Confirm" run={() => login(key)} onDone={onDone}>
      <Input
        label="API key or operator's token"
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        value={key}
        onText={setKey}
      />
    </Form>
  );
}

/** The page where a login in a new tab ends. It notifies the first tab and closes. */
export function Confirmed() {
  const { query } = useCell(route);
  const { flow = "", why = null } = query;
  useEffect(() => {
    tellConfirmed({ flow, why });
    close();
  }, [flow]);
  return (
    <main class="login">
      <h1>{why === null ? "Confirmed" : "Not confirmed"}</h1>
      <p>
        {why !== null && (WHY[why] ?? "That did not work.")} Close this tab and return to the first
        one.
      </p>
    </main>
  );
}
