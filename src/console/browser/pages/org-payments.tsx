import { useMemo, useState } from "preact/hooks";
import type { Calls } from "../api/types.ts";
import { microsOf, spent } from "../lib/money.ts";
import { cardName, stateOf, wayOf } from "../lib/purchases.ts";
import { readAside, change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Badge, Facts, Money, Panel } from "../ui/basics.tsx";
import { Dialog, FormDialog, Input, Select } from "../ui/dialog.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import { column, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

type Purchase = Calls["GET /admin/v1/orgs/{id}/purchases"]["answer"]["purchases"][number];
const TOUCHES = ["/admin/v1/orgs"];
const EVERY_MS = 10_000;

const COLUMNS: readonly Column<Purchase>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("way", "How", (purchase) => wayOf(purchase)),
  column("state", "State", (purchase) => stateOf(purchase)[0], {
    cell: (purchase) => <Badge tone={stateOf(purchase)[1]}>{stateOf(purchase)[0]}</Badge>,
  }),
  column("dollars", "Amount", (one) => one.amount_dollars, {
    align: "right",
    cell: (one) => <Money micros={microsOf(one.amount_dollars)} />,
  }),
  column("credited", "Added", (one) => one.credited_micro, {
    align: "right",
    cell: ({ credited_micro: micros }) =>
      micros === null ? "" : <Money micros={micros} kind="left" />,
  }),
  column("back", "Refunded", ({ returned_micro }) => returned_micro, {
    align: "right",
    cell: ({ returned_micro: micros }) => (micros === 0 ? "" : <Money micros={micros} />),
  }),
  column("payment", "Payment", ({ payment_id }) => payment_id, { wide: true }),
];

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
                Write off…
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
            empty={<Empty text="No purchases. All credits came from operators." />}
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
  const paid = microsOf(purchase.amount_dollars) - purchase.returned_micro;
  const [dollars, setDollars] = useState((paid / 1_000_000).toFixed(2));
  const [reason, setReason] = useState<Reason>("requested_by_customer");
  const cents = Math.round(Number(dollars.replaceAll(/[$,\s]/g, "")) * 100) || 0;
  const amount = spent(cents * 10_000);
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [cents, reason]);
  const path = { id: orgId, purchase_id: purchase.id };
  const body = { amount_cents: cents, reason };
  return (
    <FormDialog
      title={`Refund ${amount}?`}
      verb={`Refund ${amount}`}
      run={() =>
        change(
          "POST /admin/v1/orgs/{id}/purchases/{purchase_id}/refund",
          { path, body, idempotencyKey },
          TOUCHES,
        )
      }
      onClose={onClose}
    >
      <p>
        {amount} of {spent(microsOf(purchase.amount_dollars))} return to the card. The customer
        loses that amount of credits, and owes what is already spent. You can't undo this.
      </p>
      <Input
        label="Amount [$]"
        param="amount_cents"
        hint={`At most ${spent(paid)}, plus tax`}
        required
        inputMode="decimal"
        pattern="\$?[\d,]+(\.\d{1,2})?"
        value={dollars}
        onText={setDollars}
      />
      <Select
        label="Reason"
        param="reason"
        value={reason}
        options={Object.entries(REASONS) as [Reason, string][]}
        onPick={setReason}
      />
    </FormDialog>
  );
}

const REASONS = {
  requested_by_customer: "Requested by the customer",
  duplicate: "Duplicate payment",
  fraudulent: "Fraudulent payment",
} as const;
type Reason = keyof typeof REASONS;

function Forgive({ id, owed, onClose }: { id: string; owed: number; onClose: () => void }) {
  const [dollars, setDollars] = useState(String(owed / 1_000_000));
  const [reference, setReference] = useState("");
  const body = { forgive_micro: microsOf(Number(dollars)), reference };
  return (
    <FormDialog
      title="Write off a debt"
      verb={`Write off ${spent(microsOf(Number(dollars)))}`}
      run={() => change("POST /admin/v1/orgs/{id}/owed", { path: { id }, body }, TOUCHES)}
      onClose={onClose}
    >
      <Input
        label="Dollars"
        param="forgive_micro"
        required
        type="number"
        step="0.000001"
        value={dollars}
        onText={setDollars}
      />
      <Input
        label="Reference"
        param="reference"
        hint="Each reference counts once"
        required
        value={reference}
        onText={setReference}
      />
    </FormDialog>
  );
}
