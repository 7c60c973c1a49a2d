import { useState } from "preact/hooks";
import type { CompanyDomain } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { Badge, Panel } from "../ui/basics.tsx";
import { Field, FormDialog } from "../ui/dialog.tsx";
import { Shown } from "../ui/states.tsx";

const TOUCHES = ["/people"];

/** Domains by which the company's people find the organisation and join it. */
export function Company() {
  const [naming, setNaming] = useState(false);
  const read = useRead("GET /console/api/people/company/domains", {});
  return (
    <Panel
      title="Company log-in"
      aside={
        <button type="button" onClick={() => setNaming(true)}>
          Add a domain
        </button>
      }
    >
      <Shown read={read} height={60}>
        {({ domains }) => (
          <>
            {domains.length === 0 && (
              <p class="muted">
                Whoever has an account of your company's domain may join, as a member.
              </p>
            )}
            {domains.map((one) => (
              <Domain key={one.domain} one={one} />
            ))}
          </>
        )}
      </Shown>
      {naming && <NewDomain onClose={() => setNaming(false)} />}
    </Panel>
  );
}

function Domain({ one }: { one: CompanyDomain }) {
  const { domain, record, proven_at, approved, lost_since } = one;
  const [failed, setFailed] = useState("");
  const at = { path: { domain } };
  const prove = async (): Promise<void> => {
    const done = await change(
      "POST /console/api/people/company/domains/{domain}/prove",
      at,
      TOUCHES,
    );
    setFailed(done.ok ? "" : done.failure.message);
  };
  const remove = async (): Promise<void> => {
    const done = await change("DELETE /console/api/people/company/domains/{domain}", at, TOUCHES);
    setFailed(done.ok ? "" : done.failure.message);
  };
  return (
    <div>
      <p>
        <strong>{domain}</strong> {standing(proven_at !== null, approved, lost_since !== null)}{" "}
        {proven_at === null && (
          <button type="button" class="quiet" onClick={() => void prove()}>
            Check the record of {domain}
          </button>
        )}{" "}
        <button type="button" class="quiet" onClick={() => void remove()}>
          Remove {domain}
        </button>
      </p>
      {proven_at === null && (
        <p class="small">
          Set the TXT record <code>{record.name}</code> to <code>{record.value}</code>
        </p>
      )}
      {failed !== "" && (
        <p class="small bad-text" role="alert">
          ■ {failed}
        </p>
      )}
    </div>
  );
}

function standing(isProven: boolean, isApproved: boolean, isLost: boolean) {
  if (isLost) return <Badge tone="bad">its record is gone</Badge>;
  if (!isProven) return <Badge>not proven</Badge>;
  return isApproved ? (
    <Badge tone="good">people join by it</Badge>
  ) : (
    <Badge>the operator must agree</Badge>
  );
}

function NewDomain({ onClose }: { onClose: () => void }) {
  const [domain, setDomain] = useState("");
  return (
    <FormDialog
      title="Add a domain of your company"
      verb="Add it"
      run={() => change("POST /console/api/people/company/domains", { body: { domain } }, TOUCHES)}
      onDone={onClose}
      onClose={onClose}
    >
      <Field label="Domain" param="domain" hint="Its own name, without www">
        <input required value={domain} onInput={(e) => setDomain(e.currentTarget.value)} />
      </Field>
    </FormDialog>
  );
}
