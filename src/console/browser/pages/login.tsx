import { useState } from "preact/hooks";
import { login } from "../api/client.ts";
import { leaveBarredPage } from "../pages.ts";
import { useCell } from "../state/cell.ts";
import { logoutReason, session } from "../state/session.ts";
import { LoginMethods } from "./login-methods.tsx";
import { Facts } from "../ui/basics.tsx";
import { Form, Input } from "../ui/dialog.tsx";

export { FailedLogin, Invitation } from "./login-methods.tsx";
export { Confirmed, ConfirmLogin } from "../ui/confirm-login.tsx";

const ROLES = [
  ["Owner, admin", "balance, spend by model, key and end user, all keys, settings"],
  ["Billing", "the same, to read"],
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
      {why !== null && (
        <p class="notice" role="status">
          {why}
        </p>
      )}
      <LoginMethods purpose="log_in" />
      <Form
        verb="Log in"
        run={() => login(key)}
        onDone={(who) => {
          logoutReason.set(null);
          setKey("");
          leaveBarredPage(who);
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
