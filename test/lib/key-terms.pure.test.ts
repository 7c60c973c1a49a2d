import { describe, expect, it } from "vitest";
import { isLimited, NO_TERMS, termsOfText, termsText } from "../../src/shared/key-terms.ts";
import type { KeyTerms } from "../../src/shared/key-terms.ts";
import { TERM_COLUMNS, termsOfRow, valuesOfTerms } from "../../src/shared/key-term-rows.ts";
import { readBudgets } from "../../src/shared/budgets.ts";
import { micros } from "../../src/shared/money.ts";

const FULL: KeyTerms = {
  budgetMicro: micros(0),
  budgetPeriod: "week",
  tpmLimit: 1,
  maxConcurrent: 3,
  allowedModels: [],
  policy: { allowed_models: ["a/*"], allowed_providers: [], allowed_data_regions: null },
  endUser: "u",
  expiresAt: 5,
  budgets: readBudgets([{ limit_dollars: 1, window: "60m" }]),
  mayHold: true,
};

/** Returns the limits that are read from a row with these columns. */
function inRow(terms: KeyTerms, columns: readonly string[]): KeyTerms {
  const values = valuesOfTerms(terms, columns);
  const more = values.at(-1) ?? null;
  const row = Object.fromEntries(columns.map((name, at) => [name, values[at] ?? null]));
  return termsOfRow({ ...row, more: more === null ? null : String(more) });
}

describe("a key's limits", () => {
  it("stay the same in a database row and in an object's storage", () => {
    for (const terms of [FULL, NO_TERMS, { ...NO_TERMS, allowedModels: ["smart", "a/*"] }]) {
      expect(inRow(terms, TERM_COLUMNS)).toEqual(terms);
      expect(inRow(terms, ["tpm_limit"])).toEqual(terms); // a limit without its own column
      expect(termsOfText(termsText(terms))).toEqual(terms);
    }
    expect(termsText(NO_TERMS)).toBeNull();
  });

  it("exist if any limit is set, even a budget of 0 or an empty list", () => {
    expect(isLimited(NO_TERMS)).toBe(false);
    const one = {
      budgetMicro: micros(0),
      tpmLimit: 1,
      maxConcurrent: 1,
      allowedModels: [],
      policy: { allowed_models: [], allowed_providers: null, allowed_data_regions: null },
      endUser: "u",
      expiresAt: 0,
    };
    for (const [name, value] of Object.entries(one)) {
      expect([name, isLimited({ ...NO_TERMS, [name]: value })]).toEqual([name, true]);
    }
  });
});
