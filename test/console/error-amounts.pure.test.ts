import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rewriteAmounts, microsOf } from "../../src/console/browser/lib/money.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { errorResponseOf } from "../../src/shared/http/failure-mapping.ts";
import { micros } from "../../src/shared/money.ts";

function failureOf(
  kind: string,
  amounts: readonly number[],
  { onlyHolds, month }: { readonly onlyHolds: boolean; readonly month: string },
): Failure {
  const resetsAt = Date.parse(`${month}-01T00:00:00Z`);
  const [whole = micros(0), rest = whole, required = whole, held = whole] = amounts.map(micros);
  const shortage = { leftMicro: rest, heldMicro: held, requiredMicro: required, onlyHolds };
  if (kind === "quota") {
    return { kind: "quota_exceeded", period: "month", quotaMicro: whole, resetsAt, ...shortage };
  }
  if (kind === "key") {
    const own = { period: "month", budgetMicro: whole, resetsAt } as const;
    return { kind: "key_budget_exceeded", ...own, ...shortage };
  }
  if (kind === "balance") return { kind: "balance_too_low", balanceMicro: whole, ...shortage };
  if (kind === "owed") return { kind: "payment_reversed", owedMicro: whole };
  const budget = { budgetId: "lim_1", unit: "dollars", window: "10m", scope: "key" } as const;
  const used = { limit: whole, left: rest, held, required, onlyHolds, resetsAt };
  return { kind: "budget_exceeded", ...budget, ...used };
}

describe("an error with amounts in the console", () => {
  const amount = fc.integer({ min: 0, max: 10 ** 12 });
  const months = fc.constantFrom("2026-09", "2026-12");
  const kinds = fc.constantFrom("quota", "key", "budget", "balance", "owed");

  it("shows each amount exactly in dollars, and no micro-credits", () => {
    fc.assert(
      fc.property(
        kinds,
        fc.tuple(amount, amount, amount, amount),
        fc.record({ onlyHolds: fc.boolean(), month: months }),
        (kind, all, more) => {
          const { message } = errorResponseOf(failureOf(kind, all, more));
          const shown = rewriteAmounts(message);
          expect(shown).not.toMatch(/micro|T00:00|\d{4}-/);
          const amounts = (shown.match(/\$[\d.]*\d/g) ?? []).map((one) =>
            microsOf(Number(one.slice(1))),
          );
          expect(amounts.length).toBeGreaterThan(0);
          for (const one of amounts) expect(all).toContain(one);
          const others = shown.replaceAll(
            /\$[\d.]*\d|1 (?:Sept|Dec), 00:00 UTC|10 minutes|1s/g,
            "",
          );
          expect(others).not.toMatch(/\d/);
        },
      ),
    );
  });

  it("stays unchanged without amounts", () => {
    const message = "The model 'gpt-5.4' does not exist. Please retry after 20s.";
    expect(rewriteAmounts(message)).toBe(message);
  });
});
