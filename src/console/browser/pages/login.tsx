import { useState, useEffect } from "preact/hooks";
import { call, login, readSession, viewOrganization } from "../api/client.ts";
import { leaveForbiddenPage } from "../pages.ts";
import { useCell } from "../state/cell.ts";
import { logoutReason, session, describeSessionEnd, useSession } from "../state/session.ts";
import { Facts, Badge, Notice, Time, Button } from "../ui/basics.tsx";
import { Form, Input, Dialog, useChange } from "../ui/dialog.tsx";
import { lastIssuer, useLoginMethods, startLogIn, switchOrganization } from "../api/people.ts";
import type { ReasonToLogIn } from "../api/people.ts";
import type { ShownInvitation } from "../api/types.ts";
import type { CallFailure, CallOutcome, CurrentSession } from "../api/client.ts";
import { hrefOf, currentRoute, usePathSegments } from "../state/route.ts";
import type { UrlQuery, CurrentRoute } from "../state/route.ts";
import { FailureNotice } from "../ui/states.tsx";
import {
  pendingConfirmation,
  broadcastConfirmation,
  watchBroadcastConfirmations,
} from "../state/confirming.ts";
import type { PendingConfirmation } from "../state/confirming.ts";

const ROLES = [
  ["Owner, admin", "balance, spend by model, key and end user, all keys, settings"],
  ["Billing", "the same, to read, buy credits, set budgets and pause requests"],
  ["Member", "your own keys and their requests"],
  ["Operator's token", "the region's organizations and their health"],
] as const;

export function Login() {
  const [key, setKey] = useState("");
  const why = useCell(logoutReason);
  return (
    <main class="login">
      <h1>Turnpike</h1>
      <p>See your balance and control spending.</p>
      {why !== null && <Notice>{why}</Notice>}
      <LoginMethods purpose="log_in" />
      <Form
        verb="Log in"
        run={() => login(key)}
        onDone={(who) => {
          logoutReason.set(null);
          setKey("");
          leaveForbiddenPage(who);
          session.set(who);
        }}
      >
        <Input
          label="API key or operator's token"
          hint="We exchange it for a 12-hour session and don't store it."
          type="password"
          name="key"
          autocomplete="off"
          spellcheck={false}
          required
          autofocus
          value={key}
          onText={setKey}
        />
      </Form>
      <h2>The console shows</h2>
      <Facts facts={ROLES} />
      <p class="small muted">
        No key yet? Ask the operator of this region for the first one. <a href="/docs/">Docs</a>
      </p>
    </main>
  );
}

const FAILED_LOGIN_TEXTS: Readonly<Record<string, string>> = {
  expired: "This login took longer than ten minutes or was already completed. Try again.",
  denied: "The login was declined.",
  refused: "The login provider's response was invalid. Try again.",
  unknown: "No account here. Create one, open another region, or ask your team for an invitation.",
  unproven:
    "Your email address isn't verified. Verify it at your login provider, or use another account.",
  other_person: "This login belongs to another account.",
  too_many: "Too many sign-ups at the moment. Try again later.",
  issuer_unreachable: "The login provider doesn't respond. Try again, or use another one.",
  other_address: "The invitation is for another address.",
  invitation_over: "The invitation was used or canceled, or has expired.",
};

/** Matches only an email address, so that a link can't put other text on the page. */
const ADDRESS = /^[^\s@]{1,64}@[^\s@]{1,100}$/;

/** Returns the reason for a failed login, from the address's query. */
function whyOf({ why = "", account = "" }: UrlQuery, region = ""): string {
  const text = FAILED_LOGIN_TEXTS[why] ?? "The login failed. Try again.";
  const isNamed = why === "unknown" && ADDRESS.test(account);
  const where = region === "" ? "" : ` in the ${region}`;
  return isNamed ? text.replace("here", `for ${account}${where}`) : text;
}

const ROUTE = /^#\/[\w/?=&.%-]{0,200}$/;

/** The storage key for the page after login. */
const GOAL_KEY = "turnpike-goal";

function goalOf({ path, query }: CurrentRoute): string {
  if (path[0] === "login") return sessionStorage.getItem(GOAL_KEY) ?? "#/";
  const { why: _why, account: _account, joined: _joined, ...rest } = query;
  const go = path[0] === "invitation" ? hrefOf([], { joined: "yes" }) : hrefOf(path, rest);
  return ROUTE.test(go) ? go : "#/";
}

function LoginMethods({ purpose, invitation }: { purpose: ReasonToLogIn; invitation?: string }) {
  const place = useCell(currentRoute);
  const loginMethods = useLoginMethods();
  const [failure, setFailure] = useState<CallFailure>();
  const [signsUp, setSignsUp] = useState(false);
  const [company, setCompany] = useState("");
  const [isEdited, setEdited] = useState(false);
  const { why } = place.query;
  if (loginMethods === undefined) return null;
  const regions = loginMethods.regions.map(({ region, console: href }) => (
    <p key={region} class="small">
      <a href={href}>Open the {region.toUpperCase()} console</a>
    </p>
  ));
  if (loginMethods.issuers.length === 0) return <>{regions}</>;
  const joins = company.trim() !== "" ? "join" : purpose;
  const chosen = purpose === "log_in" && signsUp ? "sign_up" : joins;
  const start = async (issuer: string): Promise<void> => {
    const go = goalOf(place);
    sessionStorage.setItem(GOAL_KEY, go);
    const asked = { issuer, company, go, ...(invitation !== undefined && { invitation }) };
    const started = await startLogIn(chosen, asked);
    if (!started.ok) setFailure(started.failure);
  };
  const edit = (change: () => void): void => {
    change();
    setEdited(true);
    setFailure(undefined);
  };
  return (
    <section class="panel">
      <p>
        <Badge>{loginMethods.region.toUpperCase()}</Badge>{" "}
        {chosen === "sign_up"
          ? `Sign up. Your organization's data stays in the ${loginMethods.region.toUpperCase()}.`
          : `Turnpike ${loginMethods.region.toUpperCase()}`}
      </p>
      {why !== undefined && !isEdited && (
        <Notice>{whyOf(place.query, loginMethods.region.toUpperCase())}</Notice>
      )}
      {failure && <FailureNotice failure={failure} />}
      {loginMethods.issuers.map(({ id, name }) => (
        <p key={id}>
          <Button text={`Continue with ${name}`} class="primary" onClick={() => void start(id)} />{" "}
          {id === lastIssuer() && <span class="small muted">last used</span>}
        </p>
      ))}
      {purpose === "log_in" && loginMethods.sign_up !== "off" && (
        <Button
          text={signsUp ? "Log in instead" : "Create account"}
          class="quiet"
          onClick={() => edit(() => setSignsUp(!signsUp))}
        />
      )}
      {purpose === "log_in" && !signsUp && loginMethods.joins && (
        <CompanyName
          company={company}
          onInput={(text) => edit(() => setCompany(text))}
          onOwn={() => void start("company")}
        />
      )}
      {regions}
    </section>
  );
}

type CompanyNameProps = { company: string; onInput: (company: string) => void; onOwn: () => void };
function CompanyName({ company, onInput, onOwn }: CompanyNameProps) {
  return (
    <>
      <label class="small">
        Company domain:{" "}
        <input
          value={company}
          placeholder="acme.example"
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
        />
      </label>
      {company.trim() !== "" && <Button text="Continue with your company login" onClick={onOwn} />}
    </>
  );
}

export function FailedLogin() {
  return <Notice role="alert">{whyOf(useCell(currentRoute).query)}</Notice>;
}

const PREVIEW = "POST /console/api/people/invitation/preview";

export function Invitation() {
  const [, token = ""] = usePathSegments();
  const [invited, setInvited] = useState<ShownInvitation>();
  const [failure, setFailure] = useState<CallFailure>();
  useEffect(() => {
    void call(PREVIEW, { body: { token } }).then((read) =>
      read.ok ? setInvited(read.value) : setFailure(read.failure),
    );
  }, [token]);
  return (
    <main class="login">
      <h1>Invitation</h1>
      {failure && <FailureNotice failure={failure} />}
      {invited && (
        <>
          <p>
            {invited.inviter ?? "An operator"} invites you to the organization{" "}
            <strong>{invited.organization}</strong> as <strong>{invited.role}</strong>
            {invited.email !== null && `, for ${invited.email}`}, until{" "}
            <Time at={invited.expires_at} />.
          </p>
          <LoginMethods purpose="accept" invitation={token} />
        </>
      )}
    </main>
  );
}

/** The dialog for a call that needs a new login or the page's organization. */
export function ConfirmLogin() {
  const pending = useCell(pendingConfirmation);
  if (pending === null) return null;
  return pending.why === "switched" ? (
    <SwitchedDialog {...pending} />
  ) : (
    <ConfirmDialog {...pending} />
  );
}

function accountOf({ kind, operator, person, key }: CurrentSession): string {
  return JSON.stringify([kind, operator, person?.id, key?.id]);
}

/**
 * Loads the session after a login, and switches back to the page's organization. Reloads the page
 * for another account.
 */
async function resume(before: CurrentSession): Promise<CallOutcome<CurrentSession>> {
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

function useResume({ finish }: PendingConfirmation) {
  const before = useSession();
  const resumption = useChange(
    () => resume(before),
    (now) => {
      session.set(now);
      finish(true);
    },
  );
  return { before, ...resumption };
}

/** The dialog after another tab switched the organization. */
function SwitchedDialog(pending: PendingConfirmation) {
  const { change, finish } = pending;
  const { before, busy, failure, start } = useResume(pending);
  const name = before.organization?.name ?? "no organization";
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

function ConfirmDialog(pending: PendingConfirmation) {
  const { why, change, finish } = pending;
  const { before, failure, start } = useResume(pending);
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
      {before.kind !== "key" && <ProviderButtons isOver={isOver} onDone={start} />}
      {before.kind !== "person" && <PasteKeyForm onDone={start} />}
    </Dialog>
  );
}

/** Buttons that log in at an identity provider in a new tab, so that this page keeps its forms. */
function ProviderButtons({ isOver, onDone }: { isOver: boolean; onDone: () => void }) {
  const loginMethods = useLoginMethods();
  const [why, setWhy] = useState<string>();
  const [failure, setFailure] = useState<CallFailure>();
  const [flow] = useState(() => crypto.randomUUID());
  useEffect(
    () =>
      watchBroadcastConfirmations(flow, (failed) => {
        if (failed === null) onDone();
        else setWhy(FAILED_LOGIN_TEXTS[failed] ?? "The login failed. Try again.");
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
      {why !== undefined && <Notice role="alert">{why}</Notice>}
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

/** The page after a login in a new tab. It notifies the first tab and closes. */
export function Confirmed() {
  const { query } = useCell(currentRoute);
  const { flow = "", why = null } = query;
  useEffect(() => {
    broadcastConfirmation({ flow, why });
    close();
  }, [flow]);
  return (
    <main class="login">
      <h1>{why === null ? "Confirmed" : "Not confirmed"}</h1>
      <p>
        {why !== null && (FAILED_LOGIN_TEXTS[why] ?? "The login failed.")} Close this tab and return
        to the first one.
      </p>
    </main>
  );
}
