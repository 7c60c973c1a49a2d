import { useMemo, useState } from "preact/hooks";
import type { Calls } from "../api/types.ts";
import { microsOf, spent } from "../lib/money.ts";
import { cardName, stateOf, wayOf } from "../lib/purchases.ts";
import { readAside, change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Badge, Facts, Money, Panel, Time } from "../ui/basics.tsx";
import { Dialog, Field, FormDialog } from "../ui/dialog.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type Purchase = Calls["GET /admin/v1/orgs/{id}/purchases"]["answer"]["purchases"][number];
const TOUCHES = ["/admin/v1/orgs"];
const EVERY_MS = 10_000;

const COLUMNS: readonly Column<Purchase>[] = [
  {
    id: "at",
    title: "When",
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} withClock />,
  },
  { id: "way", title: "How", value: (purchase) => wayOf(purchase) },
  {
    id: "state",
    title: "State",
    value: (purchase) => stateOf(purchase)[0],
    cell: (purchase) => <Badge tone={stateOf(purchase)[1]}>{stateOf(purchase)[0]}</Badge>,
  },
  { id: "dollars", title: "Asked, $", align: "right", value: (one) => one.amount_dollars },
  {
    id: "credited",
    title: "Added",
    align: "right",
    value: (one) => one.credited_micro,
    cell: ({ credited_micro: micros }) =>
      micros === null ? "" : <Money micros={micros} kind="left" />,
  },
  {
    id: "back",
    title: "Gone back",
    align: "right",
    value: ({ returned_micro }) => returned_micro,
    cell: ({ returned_micro: micros }) => (micros === 0 ? "" : <Money micros={micros} />),
  },
  { id: "payment", title: "Payment", wide: true, value: ({ payment_id }) => payment_id },
];

/** An organization's purchases, refunds and debt, for operators. */
export function OrganizationPayments({ id }: { id: string }) {
  const [opened, setOpened] = useState<Purchase | null>(null);
  const [forgiving, setForgiving] = useState(false);
  const mayForgive = useMay()("POST /admin/v1/orgs/{id}/owed");
  const credits = useRead("GET /admin/v1/orgs/{id}/credits", { path: { id } }, { every: EVERY_MS });
  const { page, rows, pager } = usePages(
    "GET /admin/v1/orgs/{id}/purchases",
    { path: { id } },
    {
      cursor: "after",
      read: ({ purchases, next_after }) => ({ rows: purchases, next: next_after }),
      every: EVERY_MS,
    },
  );
  const owed = readAside(credits)?.owed_micro ?? 0;
  return (
    <Panel
      title="Payments"
      aside={
        owed > 0 && (
          <span>
            <Badge tone="bad">{spent(owed)} owed</Badge>{" "}
            {mayForgive && (
              <button type="button" class="quiet" onClick={() => setForgiving(true)}>
                Forgive…
              </button>
            )}
          </span>
        )
      }
    >
      <ReadResult read={page} height={108}>
        {() => (
          <Table
            name="Purchases"
            columns={COLUMNS}
            rows={rows}
            keyOf={(one) => one.id}
            open={setOpened}
            pager={pager}
            empty={<Empty text="Nothing was bought: credits came from operators alone." />}
          />
        )}
      </ReadResult>
      {opened && <Detail orgId={id} purchase={opened} onClose={() => setOpened(null)} />}
      {forgiving && <Forgive id={id} owed={owed} onClose={() => setForgiving(false)} />}
    </Panel>
  );
}

type Opened = { readonly orgId: string; readonly purchase: Purchase; readonly onClose: () => void };

const named = (id: string | null) => (id === null ? null : <code>{id}</code>);

function Detail({ orgId, purchase, onClose }: Opened) {
  const [refunding, setRefunding] = useState(false);
  const mayRefund = useMay()("POST /admin/v1/orgs/{id}/purchases/{purchase_id}/refund");
  if (refunding) return <Refund {...{ orgId, purchase, onClose }} />;
  return (
    <Dialog title="Purchase" onClose={onClose} wide>
      <Facts
        facts={[
          ["Id", named(purchase.id)],
          ["Payment", named(purchase.payment_id)],
          ["Checkout", named(purchase.session_id)],
          ["Invoice", named(purchase.invoice_id)],
          ["Customer", named(purchase.customer_id)],
          ["Ordered by", `${purchase.actor.kind} ${purchase.actor.id ?? ""}`],
          ["Card", purchase.card === null ? null : cardName(purchase.card)],
          ["Error", purchase.error === null ? null : purchase.error.code],
          ["Last request", named(purchase.request_id)],
        ]}
      />
      {mayRefund && purchase.payment_id !== null && (
        <div class="actions end">
          <button type="button" class="danger" onClick={() => setRefunding(true)}>
            Refund…
          </button>
        </div>
      )}
    </Dialog>
  );
}

function Refund({ orgId, purchase, onClose }: Opened) {
  const [dollars, setDollars] = useState("");
  const body = dollars === "" ? {} : { amount_cents: Math.round(Number(dollars) * 100) };
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [dollars]);
  const path = { id: orgId, purchase_id: purchase.id };
  return (
    <FormDialog
      title={`Refund of ${purchase.amount_dollars} dollars`}
      verb="Refund it"
      run={() =>
        change(
          "POST /admin/v1/orgs/{id}/purchases/{purchase_id}/refund",
          { path, body, idempotencyKey },
          TOUCHES,
        )
      }
      onDone={onClose}
      onClose={onClose}
    >
      <p>
        The money goes back to the card, and the credits of that part are taken back. What of them
        is spent already is owed.
      </p>
      <Field label="Dollars" param="amount_cents" hint="With their tax; empty: all that is left">
        <input
          type="number"
          min="0.01"
          step="0.01"
          value={dollars}
          onInput={(event) => setDollars(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  );
}

function Forgive({ id, owed, onClose }: { id: string; owed: number; onClose: () => void }) {
  const [dollars, setDollars] = useState(String(owed / 1_000_000));
  const [reference, setReference] = useState("");
  const body = { forgive_micro: microsOf(Number(dollars)), reference };
  return (
    <FormDialog
      title="Forgive what is owed"
      verb="Forgive it"
      run={() => change("POST /admin/v1/orgs/{id}/owed", { path: { id }, body }, TOUCHES)}
      onDone={onClose}
      onClose={onClose}
    >
      <Field label="Dollars" param="forgive_micro">
        <input
          required
          type="number"
          step="0.000001"
          value={dollars}
          onInput={(event) => setDollars(event.currentTarget.value)}
        />
      </Field>
      <Field label="Reference" param="reference" hint="The same one counts once">
        <input
          required
          value={reference}
          onInput={(event) => setReference(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  );
}
