import { useEffect, useState } from "preact/hooks";
import { lastIssuer, previewInvitation, readLoginMethods, startLogIn } from "../api/people.ts";
import type { InvitationPreview, LoginMethodsInfo, Purpose } from "../api/people.ts";
import type { CallFailure } from "../api/client.ts";
import { useCell } from "../state/cell.ts";
import { hrefOf, route, usePath } from "../state/route.ts";
import type { Query, Route } from "../state/route.ts";
import { Badge, Time, Button } from "../ui/basics.tsx";
import { FailureNotice } from "../ui/states.tsx";

export const FAILED_LOGIN_TEXTS: Readonly<Record<string, string>> = {
  expired: "This login took longer than ten minutes or was already completed. Try again.",
  denied: "The login was declined.",
  refused: "The login provider's response was invalid. Try again.",
  unknown: "No account here. Create one, open another region, or ask your team for an invitation.",
  unproven:
    "Your email address isn't verified. Verify it at your login provider, or use another account.",
  other_person: "This login belongs to another account.",
  too_many: "There are too many sign-ups at the moment. Try again later.",
  issuer_unreachable: "The login provider doesn't respond. Try again, or use another one.",
  other_address: "The invitation is for another address.",
  invitation_over: "The invitation was used or canceled, or has expired.",
};

/** Matches only an email address, so that a link can't put other text on the page. */
const ADDRESS = /^[^\s@]{1,64}@[^\s@]{1,100}$/;

/** Returns why a login failed, from the address's query. */
function whyOf({ why = "", account = "" }: Query, region = ""): string {
  const text = FAILED_LOGIN_TEXTS[why] ?? "That did not work. Try again.";
  const isNamed = why === "unknown" && ADDRESS.test(account);
  const where = region === "" ? "" : ` in the ${region}`;
  return isNamed ? text.replace("here", `for ${account}${where}`) : text;
}

const ROUTE = /^#\/[\w/?=&.%-]{0,200}$/;

/** The storage key for the page to open after the login. */
const GOAL_KEY = "turnpike-goal";

function goalOf({ path, query }: Route): string {
  if (path[0] === "login") return sessionStorage.getItem(GOAL_KEY) ?? "#/";
  const { why: _why, account: _account, joined: _joined, ...rest } = query;
  const go = path[0] === "invitation" ? hrefOf([], { joined: "yes" }) : hrefOf(path, rest);
  return ROUTE.test(go) ? go : "#/";
}

export function LoginMethods({ purpose, invitation }: { purpose: Purpose; invitation?: string }) {
  const place = useCell(route);
  const [loginMethods, setLoginMethods] = useState<LoginMethodsInfo>();
  const [failure, setFailure] = useState<CallFailure>();
  const [signsUp, setSignsUp] = useState(false);
  const [company, setCompany] = useState("");
  useEffect(
    () => void readLoginMethods().then((read) => read.ok && setLoginMethods(read.value)),
    [],
  );
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
  return (
    <section class="panel">
      <p>
        <Badge>{loginMethods.region.toUpperCase()}</Badge>{" "}
        {chosen === "sign_up"
          ? `Sign up. Your organization's data stays in the ${loginMethods.region.toUpperCase()}.`
          : `Turnpike ${loginMethods.region.toUpperCase()}`}
      </p>
      {why !== undefined && (
        <p class="notice" role="status">
          {whyOf(place.query, loginMethods.region.toUpperCase())}
        </p>
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
          onClick={() => setSignsUp(!signsUp)}
        />
      )}
      {purpose === "log_in" && !signsUp && loginMethods.joins && (
        <CompanyName company={company} onInput={setCompany} onOwn={() => void start("company")} />
      )}
      {regions}
    </section>
  );
}

function CompanyName({
  company,
  onInput,
  onOwn,
}: {
  company: string;
  onInput: (company: string) => void;
  onOwn: () => void;
}) {
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
  return (
    <p class="notice" role="alert">
      {whyOf(useCell(route).query)}
    </p>
  );
}

export function Invitation() {
  const [, token = ""] = usePath();
  const [invited, setInvited] = useState<InvitationPreview>();
  const [failure, setFailure] = useState<CallFailure>();
  useEffect(() => {
    void previewInvitation(token).then((read) =>
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
