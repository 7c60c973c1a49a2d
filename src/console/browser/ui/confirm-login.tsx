import { useEffect, useState } from "preact/hooks";
import { login, readSession, viewOrganization } from "../api/client.ts";
import type { CallFailure, Outcome } from "../api/client.ts";
import { switchOrganization, lastIssuer, readLoginMethods, startLogIn } from "../api/people.ts";
import type { LoginMethodsInfo } from "../api/people.ts";
import type { Session } from "../api/session.ts";
import { FAILED_LOGIN_TEXTS } from "../pages/login-methods.tsx";
import { useCell } from "../state/cell.ts";
import { pendingConfirmation, announceConfirmed, watchConfirmed } from "../state/confirming.ts";
import type { PendingConfirmation } from "../state/confirming.ts";
import { route } from "../state/route.ts";
import { describeSessionEnd, session, useSession } from "../state/session.ts";
import { Dialog, Form, Input, useChange } from "./dialog.tsx";
import { FailureNotice } from "./states.tsx";
import { Button } from "./basics.tsx";

/** The dialog that asks for a login, or for the page's organization, when a call needs it. */
export function ConfirmLogin() {
  const pending = useCell(pendingConfirmation);
  if (pending === null) return null;
  return pending.why === "switched" ? (
    <SwitchedDialog {...pending} />
  ) : (
    <ConfirmDialog {...pending} />
  );
}

function accountOf({ kind, operator, person, key }: Session): string {
  return JSON.stringify([kind, operator, person?.id, key?.id]);
}

/**
 * Loads the session after a login, and switches back to the page's organization. Reloads the page
 * for another account.
 */
async function resume(before: Session): Promise<Outcome<Session>> {
  const found = await readSession();
  if (!found.ok) return found;
  const now = found.value;
  const id = before.organization?.id ?? null;
  if (now === null || accountOf(now) !== accountOf(before)) {
    location.reload();
    return new Promise(() => undefined); // never resolves, so that nothing runs as another account
  }
  if ((now.organization?.id ?? null) === id) return found;
  const switched =
    before.kind === "operator" ? await viewOrganization(id) : await switchOrganization(id ?? "");
  if (switched.ok || switched.failure.status === 0) return switched.ok ? readSession() : switched;
  location.reload(); // the person isn't a member anymore
  return new Promise(() => undefined);
}

/** Shown after another tab switched the organization. */
function SwitchedDialog({ change, finish }: PendingConfirmation) {
  const before = useSession();
  const name = before.organization?.name ?? "no organization";
  const { busy, failure, start } = useChange(
    () => resume(before),
    (now) => {
      session.set(now);
      finish(true);
    },
  );
  return (
    <Dialog title="Another organization is open" onClose={() => finish(false)} asks={false}>
      <p>
        You switched the organization in another tab. This page shows <strong>{name}</strong>.
        {change !== "" && ` Continuing completes ${change} there.`}
      </p>
      {failure && <FailureNotice failure={failure} />}
      <div class="actions end">
        <Button text="Open the other organization" onClick={() => finish(false)} />
        <Button text={`Continue with ${name}`} class="primary" disabled={busy} onClick={start} />
      </div>
    </Dialog>
  );
}

function ConfirmDialog({ why, change, finish }: PendingConfirmation) {
  const before = useSession();
  const [failure, setFailure] = useState<CallFailure>();
  const resumePage = async (): Promise<void> => {
    const now = await resume(before);
    if (!now.ok) return setFailure(now.failure);
    session.set(now.value);
    finish(true);
  };
  const isOver = why === "ended";
  return (
    <Dialog
      title={isOver ? "Log in again" : "Confirm it's you"}
      onClose={() => finish(false)}
      asks={false}
    >
      <p>
        {isOver
          ? `${describeSessionEnd()} Log in to ${change === "" ? "continue" : `complete ${change}`}.`
          : `Confirm it's you: ${change} needs a login from the last ten minutes.`}
      </p>
      {failure && <FailureNotice failure={failure} />}
      {before.kind !== "key" && (
        <ProviderButtons isOver={isOver} onDone={() => void resumePage()} />
      )}
      {before.kind !== "person" && <PasteKeyForm onDone={() => void resumePage()} />}
    </Dialog>
  );
}

/**
 * Buttons that log in at an identity provider in a new tab, so that forms on this page are kept.
 */
function ProviderButtons({ isOver, onDone }: { isOver: boolean; onDone: () => void }) {
  const [loginMethods, setLoginMethods] = useState<LoginMethodsInfo>();
  const [why, setWhy] = useState<string>();
  const [failure, setFailure] = useState<CallFailure>();
  const [flow] = useState(() => crypto.randomUUID());
  useEffect(
    () => void readLoginMethods().then((read) => read.ok && setLoginMethods(read.value)),
    [],
  );
  useEffect(
    () =>
      watchConfirmed(flow, (failed) => {
        if (failed === null) onDone();
        else setWhy(FAILED_LOGIN_TEXTS[failed] ?? "That did not work. Try again.");
      }),
    [flow],
  );
  const go = async (issuer: string): Promise<void> => {
    const tab = open("", "_blank"); // browsers allow this only during the click
    if (tab === null) return setWhy("The browser blocked the new tab. Allow it and try again.");
    const purpose = isOver ? "log_in" : "step_up";
    const started = await startLogIn(purpose, { issuer, go: `#/confirmed?flow=${flow}` }, tab);
    if (started.ok) return;
    tab.close();
    setFailure(started.failure);
  };
  const ofCompany =
    !isOver && lastIssuer() === "company" ? [{ id: "company", name: "your company" }] : [];
  return (
    <>
      {why !== undefined && (
        <p class="notice" role="alert">
          {why}
        </p>
      )}
      {failure && <FailureNotice failure={failure} />}
      {[...ofCompany, ...(loginMethods?.issuers ?? [])].map(({ id, name }) => (
        <p key={id}>
          <Button text={`Continue with ${name}`} class="primary" onClick={() => void go(id)} />
        </p>
      ))}
      <p class="small muted">This opens a new tab. Your form stays here.</p>
    </>
  );
}

function PasteKeyForm({ onDone }: { onDone: () => void }) {
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

/** The page at which a login in a new tab ends. It notifies the first tab and closes. */
export function Confirmed() {
  const { query } = useCell(route);
  const { flow = "", why = null } = query;
  useEffect(() => {
    announceConfirmed({ flow, why });
    close();
  }, [flow]);
  return (
    <main class="login">
      <h1>{why === null ? "Confirmed" : "Not confirmed"}</h1>
      <p>
        {why !== null && (FAILED_LOGIN_TEXTS[why] ?? "That did not work.")} Close this tab and
        return to the first one.
      </p>
    </main>
  );
}
