import { useState } from "preact/hooks";
import type { Calls, OrganizationAndMoney } from "../api/types.ts";
import { formatCount, formatBalance, dollarsToMicros } from "../lib/money.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { viewAs, useCanMakeCall, useSession } from "../state/session.ts";
import { Badge, Facts, PageHead, Money, Tabs, Time, Button } from "../ui/basics.tsx";
import { Action, Confirm, FormDialog, DOLLAR_FIELD, useTyped } from "../ui/dialog.tsx";
import { ReadResult, LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";
import { OrganizationPayments } from "./org-payments.tsx";
import {
  Members,
  ChangeOrganization,
  OrganizationEvents,
  OrganizationUsage,
} from "./organization-more.tsx";

const TOUCHES = ["/admin/v1/orgs"];
type Doing = "credit" | "status" | "reconcile" | "change" | null;

const TABS = ["Money and people", "Prices", "Access", "Webhooks", "Recovery"] as const;
const parts = async () => import("./organization-parts.tsx");
const KEYS: LazyPart = { load: async () => (await parts()).OrganizationKeys };
const LEDGER: LazyPart = { load: async () => (await parts()).Ledger };
const PARTS = {
  Prices: { load: async () => (await parts()).OrganizationPrices },
  Access: { load: async () => (await parts()).Access },
  Webhooks: { load: async () => (await parts()).Webhooks },
  Recovery: { load: async () => (await parts()).Recovery },
} satisfies Record<string, LazyPart>;

export function Organization() {
  const [, id = ""] = usePathSegments();
  return <OrganizationDetail key={id} id={id} />;
}

function OrganizationDetail({ id }: { id: string }) {
  const path = { id };
  const [doing, setDoing] = useState<Doing>(null);
  const read = useRead("GET /admin/v1/orgs/{id}", { path }, { every: 5000 });
  const close = (): void => setDoing(null);
  const one = latestOf(read);
  const [query] = useQuery();
  const tab = TABS.find((name) => name === query["tab"]) ?? TABS[0];
  return (
    <>
      <PageHead title={one?.name ?? "Organization"} text={<code>{id}</code>}>
        <Button text="All organizations" onClick={() => goTo(["organizations"])} />
        <Verbs one={one} onDo={setDoing} />
      </PageHead>
      <ReadResult read={read} height={120}>
        {(found) => <OrganizationFacts one={found} />}
      </ReadResult>
      <Tabs
        label="Organization tabs"
        current={tab}
        tabs={TABS.map((name) => [
          name,
          hrefOf(["organizations", id], { ...query, tab: name === TABS[0] ? "" : name }),
        ])}
      />
      {tab === TABS[0] ? (
        <>
          <Members id={id} />
          <LazyPage page={KEYS} height={108} />
          <OrganizationPayments id={id} />
          <OrganizationUsage id={id} />
          <OrganizationEvents id={id} />
          <LazyPage page={LEDGER} height={240} />
        </>
      ) : (
        <LazyPage key={tab} page={PARTS[tab]} />
      )}
      {doing === "credit" && <Credit id={id} onClose={close} />}
      {doing === "change" && one && <ChangeOrganization one={one} onClose={close} />}
      {doing === "status" && one && <Status one={one} onClose={close} />}
      {doing === "reconcile" && <Reconcile id={id} onClose={close} />}
    </>
  );
}

type VerbsProps = { one: OrganizationAndMoney | undefined; onDo: (doing: Doing) => void };
function Verbs({ one, onDo }: VerbsProps) {
  const may = useCanMakeCall();
  const { operator } = useSession();
  const mayChange = may("PATCH /admin/v1/orgs/{id}");
  return (
    <>
      {may("POST /admin/v1/orgs/{id}/reconcile") && (
        <Button text="Reconcile" onClick={() => onDo("reconcile")} />
      )}
      {one && <Action verb="View as customer" run={() => viewAs(one.id)} onDone={() => goTo([])} />}
      {one && mayChange && <Button text="Change…" onClick={() => onDo("change")} />}
      {one && mayChange && operator !== "finance" && (
        <Button
          text={one.status === "active" ? "Suspend…" : "Resume…"}
          class="danger"
          onClick={() => onDo("status")}
        />
      )}
      {one && may("POST /admin/v1/orgs/{id}/credits") && (
        <Button text="Add credits…" class="primary" onClick={() => onDo("credit")} />
      )}
    </>
  );
}

type Found = Calls["GET /admin/v1/orgs/{id}"]["answer"];

function OrganizationFacts({ one }: { one: Found }) {
  const { suspension } = one;
  const facts = [
    ["Status", <Badge tone={one.status === "active" ? "good" : "bad"}>{one.status}</Badge>],
    [
      "Suspended",
      suspension && (
        <span>
          <Time at={suspension.at} /> by {suspension.operator}
          {suspension.reason === null ? "" : `: ${suspension.reason}`}
        </span>
      ),
    ],
    [
      "Balance",
      one.credits_micro === null ? "Unknown" : <Money micros={one.credits_micro} kind="left" />,
    ],
    ["On hold", one.held_micro === null ? "Unknown" : <Money micros={one.held_micro} />],
    ["Running requests", one.open_holds ?? "Unknown"],
    [
      "Rate limit, per 60 s",
      one.rpm_limit === null ? "no limit of its own" : formatCount(one.rpm_limit),
    ],
    ["Price list", one.price_list ?? "the region's"],
    ["Slug", one.slug],
    ["Created", <Time at={one.created_at} />],
  ] as const;
  return <Facts facts={facts} inPanel />;
}

function Credit({ id, onClose }: { id: string; onClose: () => void }) {
  const [{ amount_micro: dollars, reference }, line] = useTyped({
    amount_micro: "",
    reference: "",
  });
  const micros = dollarsToMicros(Number(dollars));
  const [isNegative, amount] = [micros < 0, formatBalance(Math.abs(micros))];
  return (
    <FormDialog
      title="Add credits"
      verb={isNegative ? `Take ${amount}` : `Add ${amount}`}
      run={() =>
        change(
          "POST /admin/v1/orgs/{id}/credits",
          { path: { id }, body: { amount_micro: micros, reference } },
          TOUCHES,
        )
      }
      onClose={onClose}
    >
      {line("amount_micro", "Amount [$]", {
        ...DOLLAR_FIELD,
        hint: "Use a negative amount to take credits. Credits on hold can't be taken.",
        required: true,
        autofocus: true,
      })}
      {line("reference", "Reference", {
        hint: "Reusing a reference adds no credits",
        required: true,
      })}
    </FormDialog>
  );
}

function Status({ one, onClose }: { one: OrganizationAndMoney; onClose: () => void }) {
  const [{ reason }, line] = useTyped({ reason: "" });
  const status = one.status === "active" ? "suspended" : "active";
  const verb = status === "active" ? `Resume ${one.name}` : `Suspend ${one.name}`;
  return (
    <Confirm
      title={`${verb}?`}
      verb={verb}
      run={() =>
        change(
          "PATCH /admin/v1/orgs/{id}",
          { path: { id: one.id }, body: { status, ...(reason && { reason }) } },
          TOUCHES,
        )
      }
      onClose={onClose}
    >
      <p>
        {status === "active"
          ? "Requests are accepted again."
          : "New requests of all keys are rejected. Running requests finish and are charged."}
      </p>
      {status === "suspended" &&
        line("reason", "Reason", {
          hint: "Only operators can see the reason",
          maxLength: 200,
        })}
    </Confirm>
  );
}

function Reconcile({ id, onClose }: { id: string; onClose: () => void }) {
  const [found, setFound] =
    useState<readonly { what: string; expected: unknown; found: unknown }[]>();
  return (
    <FormDialog
      title="Reconcile"
      verb="Recalculate"
      run={() => change("POST /admin/v1/orgs/{id}/reconcile", { path: { id } }, [])}
      onDone={({ differences }) => setFound(differences)}
      onClose={onClose}
    >
      <p>Recalculates all sums from the rows of the wallet and the database. Changes nothing.</p>
      {found?.length === 0 && <p class="good-text">● All sums match, to the micro-credit.</p>}
      {found !== undefined && found.length > 0 && (
        <pre class="code">{JSON.stringify(found, null, 2)}</pre>
      )}
    </FormDialog>
  );
}
