import { dollarsToMicros } from "../lib/money.ts";
import { describeCard, paymentMethodText, describePurchaseState } from "../lib/purchases.ts";
import type { Purchase } from "../lib/purchases.ts";
import { Badge, Money } from "./basics.tsx";
import { column, leftColumn, timeColumn } from "./table.tsx";
import type { Column } from "./table.tsx";

export function PurchaseState({ of }: { of: Purchase }) {
  const [word, tone] = describePurchaseState(of);
  return <Badge tone={tone}>{word}</Badge>;
}

export const PURCHASE_COLUMNS: readonly Column<Purchase>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("way", "How", (purchase) => paymentMethodText(purchase)),
  column("card", "Card", ({ card }) => (card === null ? "" : describeCard(card)), { wide: true }),
  column("state", "State", (purchase) => describePurchaseState(purchase)[0], {
    cell: (purchase) => <PurchaseState of={purchase} />,
  }),
  column("dollars", "Amount", ({ amount_dollars }) => amount_dollars, {
    align: "right",
    cell: ({ amount_dollars }) => <Money micros={dollarsToMicros(amount_dollars)} />,
  }),
  leftColumn("credited", "Added", ({ credited_micro }) => credited_micro),
  column("returned", "Refunded", ({ returned_micro }) => returned_micro, {
    align: "right",
    cell: ({ returned_micro }) => (returned_micro === 0 ? "" : <Money micros={returned_micro} />),
  }),
];
