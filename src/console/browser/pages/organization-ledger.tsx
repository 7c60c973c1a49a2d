import { useState } from "preact/hooks";
import type { CreditRow, LedgerRow } from "../api/types.ts";
import { useRead } from "../state/reads.ts";
import { usePath } from "../state/route.ts";
import { Panel, Button, Check } from "../ui/basics.tsx";
import { List } from "../ui/list.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import { column, leftColumn, moneyColumn, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

const POSTED: readonly Column<
  Pick<LedgerRow, "created_at" | "amount_micro" | "balance_micro"> & { readonly kind: string }
>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("kind", "Kind", ({ kind }) => kind),
  moneyColumn("amount", "Amount", ({ amount_micro }) => amount_micro),
  leftColumn("balance", "Balance", ({ balance_micro }) => balance_micro),
];
const LEDGER: readonly Column<LedgerRow>[] = [
  column("seq", "Row", ({ seq }) => seq, { wide: true }),
  ...POSTED,
  column("reference", "Reference", ({ reference, generation_id }) => reference ?? generation_id),
];
const PAYMENTS: readonly Column<CreditRow>[] = [
  ...POSTED,
  column("reference", "Reference", ({ reference }) => reference),
];
const ROWS = 50;

export function Ledger() {
  const [, id = ""] = usePath();
  const [isPayments, setPayments] = useState(false);
  const all = (
    <Check text="payments only" class="check small" isOn={isPayments} onChange={setPayments} />
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
    <ReadResult read={read} height={200}>
      {({ rows }) => (
        <>
          <Grid name="Ledger" columns={LEDGER} rows={rows} keyOf={({ seq }) => String(seq)} />
          {rows.length === 0 && before.length === 0 && <Empty text="No transactions yet." />}
          <div class="turn">
            <Button
              text="← Previous"
              disabled={before.length === 0}
              onClick={() => setBefore(before.slice(0, -1))}
            />
            <Button
              text="Next →"
              disabled={rows.length < ROWS}
              onClick={() => setBefore([...before, rows.at(-1)?.seq ?? 1])}
            />
          </div>
        </>
      )}
    </ReadResult>
  );
}

function Payments({ id }: { id: string }) {
  return (
    <List
      name="Payments"
      call="GET /admin/v1/orgs/{id}/credits"
      filling={{ path: { id } }}
      read={({ credits, next_after }) => ({ rows: credits, next: next_after })}
      height={200}
      columns={PAYMENTS}
      empty="No payment yet."
    />
  );
}
