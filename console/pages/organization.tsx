import { useState } from "preact/hooks";
import type { LedgerRow, MemberKey, OrganizationAndMoney } from "../api/types.ts";
import { grouped, microsOf } from "../lib/money.ts";
import { useCell } from "../state/cell.ts";
import { beside, change, useRead } from "../state/reads.ts";
import { goTo, route } from "../state/route.ts";
import { seeAs } from "../state/session.ts";
import { Badge, Facts, Head, Money, Panel, Time } from "../ui/basics.tsx";
import { Confirm, Field, FormDialog, useChange } from "../ui/dialog.tsx";
import { Empty, Shown } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { OrganizationPayments } from "./org-payments.tsx";
import { Members } from "./organization-members.tsx";
import { ChangeOrganization, OrganizationEvents, OrganizationUsage } from "./organization-more.tsx";

const TOUCHES = ["/admin/v1/orgs"];
type Doing = "credit" | "status" | "reconcile" | "change" | null;

/** One organisation: its money, its people, its keys, its ledger. */
export function Organization() {
  const [, id = ""] = useCell(route).path;
  return <OrganizationDetail key={id} id={id} />;
}

function OrganizationDetail({ id }: { id: string }) {
  const path = { id };
  const [doing, setDoing] = useState<Doing>(null);
  const read = useRead("GET /admin/v1/orgs/{id}", { path }, { every: 5000 });
  const close = (): void => setDoing(null);
  const one = beside(read);
  return (
    <>
      <Head title={one?.name ?? "Organisation"} text={<code>{id}</code>}>
        <button type="button" onClick={() => goTo(["organizations"])}>
          All organisations
        </button>
        <button type="button" onClick={() => setDoing("reconcile")}>
          Reconcile
        </button>
        {one && (
          <>
            <SeeAs id={one.id} />
            <button type="button" onClick={() => setDoing("change")}>
              Change…
            </button>
            <button type="button" class="danger" onClick={() => setDoing("status")}>
              {one.status === "active" ? "Suspend…" : "Resume…"}
            </button>
            <button type="button" class="primary" onClick={() => setDoing("credit")}>
              Credit
            </button>
          </>
        )}
      </Head>
      <Shown read={read} height={120}>
        {(found) => <OrganizationFacts one={found} />}
      </Shown>
      <Members id={id} />
      <Keys id={id} />
      <OrganizationPayments id={id} />
      <OrganizationUsage id={id} />
      <OrganizationEvents id={id} />
      <Ledger id={id} />
      {doing === "credit" && <Credit id={id} onClose={close} />}
      {doing === "change" && one && <ChangeOrganization one={one} onClose={close} />}
      {doing === "status" && one && <Status one={one} onClose={close} />}
      {doing === "reconcile" && <Reconcile id={id} onClose={close} />}
    </>
  );
}

/** Goes into the customer's own console, read only. */
function SeeAs({ id }: { id: string }) {
  const { busy, failure, start } = useChange(
    () => seeAs(id),
    () => goTo([]),
  );
  return (
    <button type="button" disabled={busy} onClick={start} title={failure?.message}>
      See as customer
    </button>
  );
}

function OrganizationFacts({ one }: { one: OrganizationAndMoney }) {
  const facts = [
    [
      "Status",
      <Badge key="status" tone={one.status === "active" ? "good" : "bad"}>
        {one.status}
      </Badge>,
    ],
    [
      "Balance",
      one.credits_micro === null ? (
        "unknown"
      ) : (
        <Money key="b" micros={one.credits_micro} kind="left" />
      ),
    ],
    ["Held", one.held_micro === null ? "unknown" : <Money key="h" micros={one.held_micro} />],
    ["Running requests", one.open_holds ?? "unknown"],
    [
      "Rate limit, per 60 s",
      one.rpm_limit === null ? "no limit of its own" : grouped(one.rpm_limit),
    ],
    ["Slug", one.slug],
    ["Created", <Time key="since" at={one.created_at} />],
  ] as const;
  return <Facts facts={facts} inPanel />;
}

const KEYS: readonly Column<MemberKey>[] = [
  { id: "name", title: "Name", value: ({ name }) => name },
  { id: "prefix", title: "Prefix", value: ({ prefix }) => prefix },
  {
    id: "state",
    title: "State",
    value: ({ revoked }) => revoked,
    cell: ({ revoked }) => (
      <Badge tone={revoked ? "bad" : "good"}>{revoked ? "revoked" : "live"}</Badge>
    ),
  },
  { id: "rpm", title: "RPM", align: "right", value: ({ rpm_limit }) => rpm_limit },
  {
    id: "used",
    title: "Last used",
    value: ({ last_used_at }) => last_used_at,
    cell: ({ last_used_at }) => <Time at={last_used_at} />,
  },
];

function Keys({ id }: { id: string }) {
  const [revoking, setRevoking] = useState<MemberKey | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/keys", { path: { id } });
  const columns: readonly Column<MemberKey>[] = [
    ...KEYS,
    {
      id: "do",
      title: "",
      value: () => null,
      cell: (key) =>
        key.revoked ? null : (
          <button type="button" class="quiet" onClick={() => setRevoking(key)}>
            Revoke…
          </button>
        ),
    },
  ];
  return (
    <Panel title="Keys">
      <Shown read={read} height={108}>
        {({ keys }) => (
          <Grid
            name="Keys"
            columns={columns}
            rows={keys}
            keyOf={(key) => key.id}
            isSorted={false}
          />
        )}
      </Shown>
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          verb={`Revoke ${revoking.name}`}
          run={() =>
            change(
              "DELETE /admin/v1/orgs/{id}/keys/{key_id}",
              { path: { id, key_id: revoking.id } },
              TOUCHES,
            )
          }
          onClose={() => setRevoking(null)}
          onDone={() => setRevoking(null)}
        >
          <p>Every request with it is refused at once, in every region. There is no way back.</p>
        </Confirm>
      )}
    </Panel>
  );
}

const LEDGER: readonly Column<LedgerRow>[] = [
  { id: "seq", title: "Row", wide: true, value: ({ seq }) => seq },
  {
    id: "at",
    title: "When",
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} withClock />,
  },
  { id: "kind", title: "Kind", value: ({ kind }) => kind },
  {
    id: "amount",
    title: "Amount",
    align: "right",
    value: ({ amount_micro }) => amount_micro,
    cell: ({ amount_micro }) => <Money micros={amount_micro} />,
  },
  {
    id: "balance",
    title: "Balance",
    align: "right",
    value: ({ balance_micro }) => balance_micro,
    cell: ({ balance_micro }) => <Money micros={balance_micro} kind="left" />,
  },
  {
    id: "reference",
    title: "Reference",
    value: ({ reference, generation_id }) => reference ?? generation_id,
  },
];
const ROWS = 50;

/** The ledger from its newest row back, by pages; or the payments alone. */
function Ledger({ id }: { id: string }) {
  const [isPayments, setPayments] = useState(false);
  const all = (
    <label class="check small">
      <input
        type="checkbox"
        checked={isPayments}
        onChange={(event) => setPayments(event.currentTarget.checked)}
      />{" "}
      payments only
    </label>
  );
  return (
    <Panel title="Ledger, newest first" aside={all}>
      {isPayments ? <Payments id={id} /> : <Rows id={id} />}
    </Panel>
  );
}

function Rows({ id }: { id: string }) {
  const [before, setBefore] = useState<readonly number[]>([]);
  const at = before.at(-1);
  const query = {
    order: "desc",
    limit: ROWS,
    ...(at !== undefined && { before_seq: at }),
  } as const;
  const read = useRead("GET /admin/v1/orgs/{id}/ledger", { path: { id }, query });
  return (
    <Shown read={read} height={200}>
      {({ rows }) => (
        <>
          <Grid
            name="Ledger"
            columns={LEDGER}
            rows={rows}
            keyOf={({ seq }) => String(seq)}
            isSorted={false}
          />
          {rows.length === 0 && before.length === 0 && <Empty text="No money moved yet." />}
          <div class="turn">
            <button
              type="button"
              disabled={before.length === 0}
              onClick={() => setBefore(before.slice(0, -1))}
            >
              ← Previous
            </button>
            <button
              type="button"
              disabled={rows.length < ROWS}
              onClick={() => setBefore([...before, rows.at(-1)?.seq ?? 1])}
            >
              Next →
            </button>
          </div>
        </>
      )}
    </Shown>
  );
}

/** What came in and went back, newest first. */
function Payments({ id }: { id: string }) {
  const query = { limit: ROWS };
  const read = useRead("GET /admin/v1/orgs/{id}/credits", { path: { id }, query });
  return (
    <Shown read={read} height={200}>
      {({ credits }) => (
        <>
          <Grid
            name="Payments"
            columns={LEDGER.filter(({ id: column }) => column !== "seq" && column !== "kind")}
            rows={credits.map((credit) => ({
              ...credit,
              seq: 0,
              kind: "credit" as const,
              generation_id: null,
            }))}
            keyOf={({ created_at, reference }) => `${created_at} ${reference ?? ""}`}
            isSorted={false}
          />
          {credits.length === 0 && <Empty text="No payment yet." />}
        </>
      )}
    </Shown>
  );
}

/** Money in, or out with a minus; the same reference counts once. */
function Credit({ id, onClose }: { id: string; onClose: () => void }) {
  const [dollars, setDollars] = useState("");
  const [reference, setReference] = useState("");
  return (
    <FormDialog
      title="Credit"
      verb="Credit it"
      run={() =>
        change(
          "POST /admin/v1/orgs/{id}/credits",
          { path: { id }, body: { amount_micro: microsOf(Number(dollars)), reference } },
          TOUCHES,
        )
      }
      onDone={onClose}
      onClose={onClose}
    >
      <Field
        label="Dollars"
        param="amount_micro"
        hint="With a minus to correct; never below what is held"
      >
        <input
          required
          autofocus
          type="number"
          step="0.000001"
          value={dollars}
          onInput={(event) => setDollars(event.currentTarget.value)}
        />
      </Field>
      <Field label="Reference" param="reference" hint="Of the payment: the same one counts once">
        <input
          required
          value={reference}
          onInput={(event) => setReference(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  );
}

function Status({ one, onClose }: { one: OrganizationAndMoney; onClose: () => void }) {
  const status = one.status === "active" ? "suspended" : "active";
  const verb = status === "active" ? `Resume ${one.name}` : `Suspend ${one.name}`;
  return (
    <Confirm
      title={`${verb}?`}
      verb={verb}
      run={() =>
        change("PATCH /admin/v1/orgs/{id}", { path: { id: one.id }, body: { status } }, TOUCHES)
      }
      onClose={onClose}
      onDone={onClose}
    >
      <p>
        {status === "active"
          ? "Its requests are served again."
          : "New requests of all its keys are refused; those under way are finished and charged."}
      </p>
    </Confirm>
  );
}

/** Every figure counted again from the rows. */
function Reconcile({ id, onClose }: { id: string; onClose: () => void }) {
  const [found, setFound] =
    useState<readonly { what: string; expected: unknown; found: unknown }[]>();
  return (
    <FormDialog
      title="Reconcile"
      verb="Count again"
      run={() => change("POST /admin/v1/orgs/{id}/reconcile", { path: { id } }, [])}
      onDone={({ differences }) => setFound(differences)}
      onClose={onClose}
    >
      <p>Counts the wallet and the book again from their rows, and changes nothing.</p>
      {found?.length === 0 && <p class="good-text">● Everything agrees, to the micro.</p>}
      {found !== undefined && found.length > 0 && (
        <pre class="code">{JSON.stringify(found, null, 2)}</pre>
      )}
    </FormDialog>
  );
}
