import { expect, it } from "vitest";
import { creditSumText } from "../../src/console/browser/lib/purchases.ts";
import type { CreditTransactionsPage } from "../../src/console/browser/lib/purchases.ts";

type Row = CreditTransactionsPage["credits"][number];
const row = (day: string, kind: Row["kind"], micros: number): Row => ({
  id: `${day} ${kind}`,
  purchase_id: null,
  created_at: `${day}T10:00:00Z`,
  kind,
  amount_micro: micros,
  balance_micro: 0,
  reference: "",
});

it("a list of transactions shows its sum by source: payments, refunds and the operator", () => {
  const rows = [
    row("2026-11-28", "reversal", -10e6),
    row("2026-11-27", "return", 6e6),
    row("2026-11-14", "correction", -1e6),
    row("2026-11-03", "payment", 25e6),
    row("2026-11-02", "credit", 50e6),
    row("2026-11-01", "payment", 10e6),
  ];
  expect(creditSumText(rows)).toBe(
    "1 Nov to 28 Nov (UTC): $35.00 from payments, −$4.00 refunded or disputed, $49.00 from the operator, $80.00 in all.",
  );
});

it("a list of transactions of one source shows one sum", () => {
  expect(creditSumText([row("2026-11-03", "payment", 25e6)])).toBe(
    "3 Nov (UTC): $25.00 from payments.",
  );
  expect(creditSumText([])).toBe("");
});
