import { useState } from "preact/hooks";
import type { Calls } from "../api/types.ts";
import { microsOf, formatSpent } from "../lib/money.ts";
import { stateOf, methodText } from "../lib/purchases.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Badge, Money, Panel, Button } from "../ui/basics.tsx";
import { FormDialog, MICROS, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { column, leftColumn, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";
import { PurchaseDetail, TOUCHES } from "./purchase-detail.tsx";

type Purchase = Calls["GET /admin/v1/orgs/{id}/purchases"]["answer"]["purchases"][number];
const EVERY_MS = 10_000;

export const PURCHASE_COLUMNS: readonly Column<Purchase>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("way", "How", (purchase) => methodText(purchase)),
  column("state", "State", (purchase) => stateOf(purchase)[0], {
    cell: (purchase) => <Badge tone={stateOf(purchase)[1]}>{stateOf(purchase)[0]}</Badge>,
  }),
  column("dollars", "Amount", (one) => one.amount_dollars, {
    align: "right",
    cell: (one) => <Money micros={microsOf(one.amount_dollars)} />,
  }),
  leftColumn("credited", "Added", ({ credited_micro }) => credited_micro),
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
  const owed = latestOf(credits)?.owed_micro ?? 0;
  return (
    <Panel
      title="Payments"
      aside={
        owed > 0 && (
          <span>
            <Badge tone="bad">{formatSpent(owed)} owed</Badge>{" "}
            {mayForgive && (
              <Button text="Write off…" class="quiet" onClick={() => setForgiving(true)} />
            )}
          </span>
        )
      }
    >
      <List
        name="Purchases"
        call="GET /admin/v1/orgs/{id}/purchases"
        filling={{ path: { id } }}
        every={EVERY_MS}
        read={({ purchases, next_after }) => ({ rows: purchases, next: next_after })}
        height={108}
        columns={PURCHASE_COLUMNS}
        open={setOpened}
        empty="No purchases yet"
      />
      {opened && <PurchaseDetail orgId={id} id={opened.id} onClose={() => setOpened(null)} />}
      {forgiving && <Forgive id={id} owed={owed} onClose={() => setForgiving(false)} />}
    </Panel>
  );
}

function Forgive({ id, owed, onClose }: { id: string; owed: number; onClose: () => void }) {
  const [typed, line] = useTyped({ forgive_micro: String(owed / 1_000_000), reference: "" });
  const body = { ...typed, forgive_micro: microsOf(Number(typed.forgive_micro)) };
  return (
    <FormDialog
      title="Write off a debt"
      verb={`Write off ${formatSpent(body.forgive_micro)}`}
      run={() => change("POST /admin/v1/orgs/{id}/owed", { path: { id }, body }, TOUCHES)}
      onClose={onClose}
    >
      {line("forgive_micro", "Dollars", { ...MICROS, required: true })}
      {line("reference", "Reference", {
        hint: "Reusing a reference forgives nothing",
        required: true,
      })}
    </FormDialog>
  );
}
