import { useState } from "preact/hooks";
import { splitNames } from "../lib/names.ts";
import type { BudgetEntries } from "../lib/budgets.ts";
import type { Organization, Settings as OrgSettings } from "../api/types.ts";
import { change, latestOf, useRead } from "../state/reads.ts";
import { endSession, session, useCanMakeCall, useSession } from "../state/session.ts";
import { Budgets } from "../ui/budgets.tsx";
import { PolicyPart } from "../ui/policy.tsx";
import type { NewPolicy } from "../ui/policy.tsx";
import { PartialPauses, PauseOrganization } from "../ui/pauses.tsx";
import { Facts, PageHead, Panel, Button } from "../ui/basics.tsx";
import { CloseOrganization } from "../ui/close-organization.tsx";
import { Form, useNumbers, useTyped } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";

const CLOSE = "DELETE /console/api/people/organization";
const CHANGE = "PATCH /v1/orgs/{org_id}/settings";
/** A call that only owners and admins can make. */
const MANAGER_CALL = "PATCH /v1/members/{id}";

export function Settings() {
  const { organization } = useSession();
  const may = useCanMakeCall();
  const path = { org_id: organization?.id ?? "" };
  const own = useRead("GET /v1/orgs/{org_id}", { path });
  const settings = useRead("GET /v1/orgs/{org_id}/settings", { path }, { every: 5000 });
  const save = (budgets: BudgetEntries) =>
    change(CHANGE, { path, body: { budgets } }, ["/v1/orgs"]);
  const savePolicy = (policy: NewPolicy) =>
    change(CHANGE, { path, body: { policy } }, ["/v1/orgs"]);
  return (
    <>
      <PageHead
        title="Settings"
        text="Name, budgets, policy and alerts, and the default quotas of new end users."
      />
      <Panel title="Organization">
        <ReadResult read={own} height={200}>
          {(one) => (
            <NameForm
              key={`${one.name} ${one.slug}`}
              organization={one}
              mayName={may("PATCH /v1/orgs/{org_id}")}
            />
          )}
        </ReadResult>
      </Panel>
      <Panel title="Budgets" aside={<a href="/docs/use/spending">Control spending</a>}>
        <ReadResult read={settings} height={120}>
          {({ budgets }) => <Budgets budgets={budgets} save={may(CHANGE) && save} />}
        </ReadResult>
      </Panel>
      <Panel title="Policy" aside={<a href="/docs/use/keys#policies">About policies</a>}>
        <ReadResult read={settings} height={120}>
          {({ policy, operator_policy }) => (
            <>
              <PolicyPart policy={policy} save={may(CHANGE) && may(MANAGER_CALL) && savePolicy} />
              {operator_policy && (
                <>
                  <h3>The operator's policy</h3>
                  <PolicyPart policy={operator_policy} />
                </>
              )}
            </>
          )}
        </ReadResult>
      </Panel>
      <Panel title="Pauses">
        <PartialPauses />
        <PauseOrganization />
      </Panel>
      <Panel title="Money">
        <ReadResult read={settings} height={320}>
          {(known) => <Limits path={path} settings={known} />}
        </ReadResult>
      </Panel>
      {may(CLOSE) && <ClosePanel />}
    </>
  );
}

function ClosePanel() {
  const { organization } = useSession();
  const [isClosing, setClosing] = useState(false);
  const balance = latestOf(useRead("GET /v1/balance", {}));
  return (
    <Panel title="Close organization">
      <p>
        Closing stops all keys, sessions and logins of the organization. You can restore it for 7
        days. Then members, keys and names are deleted permanently.
      </p>
      <Button text="Close organization…" class="danger" onClick={() => setClosing(true)} />
      {isClosing && organization && (
        <CloseOrganization
          noun="organization"
          slug={organization.slug}
          credits={balance?.credits_micro}
          run={(givesUp) => change(CLOSE, { body: { give_up_balance: givesUp } }, [])}
          onDone={() =>
            endSession(
              `${organization.name} is closed. To restore it within 7 days, log in and open Profile.`,
            )
          }
          onClose={() => setClosing(false)}
        />
      )}
    </Panel>
  );
}

function NameForm({ organization, mayName }: { organization: Organization; mayName: boolean }) {
  const [body, line] = useTyped({ name: organization.name, slug: organization.slug });
  const path = { org_id: organization.id };
  if (!mayName) {
    return (
      <Facts
        facts={[
          ["Name", organization.name],
          ["Slug", organization.slug],
          ["Id", <code>{organization.id}</code>],
        ]}
      />
    );
  }
  return (
    <Form
      verb="Save names"
      run={() => change("PATCH /v1/orgs/{org_id}", { path, body }, ["/v1/orgs"])}
      onDone={(changed) => {
        const who = session.get();
        if (who?.organization) {
          session.set({ ...who, organization: { ...who.organization, ...changed } });
        }
      }}
    >
      {line("name", "Name", { required: true })}
      {line("slug", "Slug", { required: true, hint: "The name that operators see" })}
    </Form>
  );
}

const FIELDS = [
  ["default_user_daily_quota_dollars", "Daily quota of new end users [$]", "If empty, no quota"],
  [
    "default_user_monthly_quota_dollars",
    "Monthly quota of new end users [$]",
    "If empty, no quota",
  ],
  ["default_alert_threshold", "Alert threshold [% of a quota]", "80: an alert at 80% of a quota"],
  ["low_balance_threshold_dollars", "Alert when the balance falls below [$]", "If empty, no alert"],
  ["max_concurrent", "Concurrent requests of all keys", "If empty, no limit"],
  [
    "keep_responses_hours",
    "Store responses of /v1/responses [hours]",
    "0: nothing is stored; at most 720",
  ],
] as const;

function Limits({ path, settings }: { path: { org_id: string }; settings: OrgSettings }) {
  const shown = {
    ...settings,
    default_alert_threshold: Number((100 * settings.default_alert_threshold).toFixed(6)),
  };
  const limits = useNumbers(FIELDS, shown);
  const [tags, line] = useTyped({ tag_keys: settings.tag_keys.join(", ") });
  const { default_alert_threshold: threshold, ...rest } = limits.body;
  const body = {
    ...rest,
    tag_keys: splitNames(tags.tag_keys),
    ...(typeof threshold === "number" && { default_alert_threshold: threshold / 100 }),
  };
  if (!useCanMakeCall()(CHANGE)) {
    return <Facts facts={FIELDS.map(([name, label]) => [label, shown[name] ?? "none"])} />;
  }
  return (
    <Form verb="Save" run={() => change(CHANGE, { path, body }, ["/v1/orgs"])}>
      {limits.fields}
      {line("tag_keys", "Tags with daily totals", {
        hint: "At most 4, separated by commas. Activity can group by them.",
      })}
    </Form>
  );
}
