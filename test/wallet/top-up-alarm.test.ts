import { expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { nextTopUpCheckAt } from "../../src/money/wallet/object/top-up.do.ts";
import { INITIAL_TOP_UP_STATE } from "../../src/money/wallet/rules/top-up.ts";
import type { WalletMemory } from "../../src/money/wallet/object/memory.do.ts";

const NOW = Date.UTC(2026, 10, 20);
const setting = { belowMicro: micros(10), amountMicro: micros(20), mostPerMonthMicro: micros(99) };

/** Returns when the wallet checks again. */
function dueAt(of: {
  readonly pausedUntil: number | null;
  readonly balance?: number;
  readonly isOn?: boolean;
  readonly isOpen?: boolean;
}): number {
  const { pausedUntil, balance = 0, isOn = true, isOpen = false } = of;
  const open = { id: "pur_1", amountMicro: micros(20), wantedAt: NOW, month: "", isTold: true };
  const memory = {
    row: { settings: { autoTopUp: isOn ? setting : null } },
    topUp: { ...INITIAL_TOP_UP_STATE, pausedUntil, open: isOpen ? open : null },
    ledger: { balance: micros(balance) },
    clock: NOW,
  };
  return nextTopUpCheckAt(memory as unknown as WalletMemory);
}

it("the alarm for automatic top-ups is set for the end of a pause, and then at least a minute ahead", () => {
  expect(dueAt({ pausedUntil: NOW + 1 })).toBe(NOW + 1);
  for (const pausedUntil of [NOW, NOW - 1, 0]) {
    expect(dueAt({ pausedUntil })).toBeGreaterThanOrEqual(NOW + 60_000);
  }
});

it("the alarm for automatic top-ups isn't set while top-ups are off, in progress or not needed", () => {
  const pausedUntil = NOW + 1;
  expect(dueAt({ pausedUntil, isOn: false })).toBe(Infinity);
  expect(dueAt({ pausedUntil, isOpen: true })).toBe(Infinity);
  expect(dueAt({ pausedUntil, balance: 10 })).toBe(Infinity);
  expect(dueAt({ pausedUntil: null })).toBe(Infinity);
});
