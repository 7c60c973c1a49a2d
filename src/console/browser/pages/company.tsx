import { useState } from "preact/hooks";
import { startLogIn } from "../api/people.ts";
import { callWithConfirmation } from "../state/confirming.ts";
import type { CompanyDomain } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { Badge, Panel, Button } from "../ui/basics.tsx";
import { Action, FormDialog, useTyped } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";

const TOUCHES = ["/people"];
const REQUIRE = "POST /console/api/people/company/issuer/require";
const PROVE = "POST /console/api/people/company/domains/{domain}/prove";

export function Company() {
  const [isAdding, setAdding] = useState(false);
  const read = useRead("GET /console/api/people/company/domains", {});
  return (
    <Panel
      title="Company login"
      aside={<Button text="Add a domain" onClick={() => setAdding(true)} />}
    >
      <ReadResult read={read} height={60}>
        {({ domains }) => (
          <>
            {domains.length === 0 && (
              <p class="muted">Anyone with an email address at the domain can join as a member.</p>
            )}
            {domains.map((one) => (
              <Domain key={one.domain} one={one} />
            ))}
          </>
        )}
      </ReadResult>
      <OwnIssuer />
      {isAdding && <NewDomain onClose={() => setAdding(false)} />}
    </Panel>
  );
}

const connect = () => startLogIn("link", { issuer: "company", go: "#/team" });

function OwnIssuer() {
  const [setting, setSetting] = useState(false);
  const read = useRead("GET /console/api/people/company/issuer", {});
  return (
    <ReadResult read={read} height={60}>
      {({ callback, issuer, state, required }) => (
        <div>
          <p>
            Identity provider: <strong>{issuer ?? "none"}</strong>{" "}
            {state === "draft" && <Badge>Not active. Test it with your own account.</Badge>}
            {required && <Badge tone="good">required</Badge>}{" "}
            <Button
              text="Add an identity provider"
              class="quiet"
              onClick={() => setSetting(true)}
            />{" "}
            {state !== "none" && (
              <>
                <Action
                  tone="quiet"
                  verb="Connect your account"
                  run={() => callWithConfirmation("link", connect)}
                />{" "}
                <Action
                  tone="quiet"
                  verb="Remove the identity provider"
                  run={() => change("DELETE /console/api/people/company/issuer", {}, TOUCHES)}
                />
              </>
            )}{" "}
            {state === "on" && (
              <Action
                tone="quiet"
                verb={required ? "Allow other logins" : "Require company login"}
                run={() => change(REQUIRE, { body: { required: !required } }, TOUCHES)}
              />
            )}
          </p>
          {setting && <NewIssuer callback={callback} onClose={() => setSetting(false)} />}
        </div>
      )}
    </ReadResult>
  );
}

function NewIssuer({ callback, onClose }: { callback: string; onClose: () => void }) {
  const [body, line] = useTyped({ issuer: "", client_id: "", client_secret: "" });
  const common = { required: true, autocomplete: "off" } as const;
  return (
    <FormDialog
      title="Identity provider"
      verb="Add provider"
      run={() => change("POST /console/api/people/company/issuer", { body }, TOUCHES)}
      onClose={onClose}
    >
      <p class="small">
        Register an OpenID Connect client at the provider with the redirect URL{" "}
        <code>{callback}</code>
      </p>
      {line("issuer", "Issuer URL, as in the discovery document", common)}
      {line("client_id", "Client ID", common)}
      {line("client_secret", "Client secret", { type: "password", ...common })}
    </FormDialog>
  );
}

function Domain({ one }: { one: CompanyDomain }) {
  const { domain, record, proven_at, approved, lost_since } = one;
  const at = { path: { domain } };
  return (
    <div>
      <p>
        <strong>{domain}</strong> {domainState(proven_at !== null, approved, lost_since !== null)}{" "}
        {proven_at === null && (
          <Action
            tone="quiet"
            verb={`Check the record of ${domain}`}
            run={() => change(PROVE, at, TOUCHES)}
          />
        )}{" "}
        <Action
          tone="quiet"
          verb={`Remove ${domain}`}
          run={() => change("DELETE /console/api/people/company/domains/{domain}", at, TOUCHES)}
        />
      </p>
      {proven_at === null && (
        <p class="small">
          Set the TXT record <code>{record.name}</code> to <code>{record.value}</code>
        </p>
      )}
    </div>
  );
}

function domainState(isProven: boolean, isApproved: boolean, isLost: boolean) {
  if (isLost) return <Badge tone="bad">its TXT record is missing</Badge>;
  if (!isProven) return <Badge>not proven</Badge>;
  return isApproved ? (
    <Badge tone="good">people can join with it</Badge>
  ) : (
    <Badge>Waiting for approval</Badge>
  );
}

function NewDomain({ onClose }: { onClose: () => void }) {
  const [body, line] = useTyped({ domain: "" });
  return (
    <FormDialog
      title="Add a company domain"
      verb="Add domain"
      run={() => change("POST /console/api/people/company/domains", { body }, TOUCHES)}
      onClose={onClose}
    >
      {line("domain", "Domain", { required: true, hint: "Without www" })}
    </FormDialog>
  );
}
