import { expect, it } from "vitest";
import { creditSumText, purchaseSumText } from "../../src/console/browser/lib/purchases.ts";
import type { Credits, Purchase } from "../../src/console/browser/lib/purchases.ts";

const purchase = (day: string, dollars: number, more: Partial<Purchase> = {}): Purchase => ({
  id: day,
  state: "credited",
  method: "checkout",
  amount_dollars: dollars,
  credited_micro: dollars * 1e6,
  returned_micro: 0,
  url: null,
  error: null,
  save_card: false,
  card: null,
  created_at: `${day}T10:00:00Z`,
  updated_at: `${day}T10:00:00Z`,
  expires_at: null,
  ...more,
});

it("a list of purchases shows the period, the total paid and the total refunded", () => {
  const listed = [
    purchase("2026-11-28", 25, { returned_micro: 4e6 }),
    purchase("2026-11-03", 250, { state: "declined", credited_micro: null }),
    purchase("2026-11-01", 10),
  ];
  expect(purchaseSumText(listed)).toBe(
    "1 Nov to 28 Nov (UTC): $35.00 paid in 2 purchases, $4.00 refunded or disputed.",
  );
  expect(purchaseSumText(listed.slice(1, 2))).toBe("");
  expect(purchaseSumText([])).toBe("");
});

const credit = (day: string, micros: number) =>
  ({ created_at: `${day}T10:00:00Z`, amount_micro: micros }) as Credits["credits"][number];

it("a list of transactions shows the total of added and the total of removed credits", () => {
  expect(creditSumText([credit("2026-11-28", -5e5), credit("2026-11-28", 1e6)])).toBe(
    "28 Nov (UTC): $1.00 added, $0.50 removed.",
  );
});
