import { describe, expect, it } from "vitest";
import {
  hasLimits,
  EMPTY_KEY_TERMS,
  keyTermsFromJson,
  keyTermsToJson,
  KEY_TERM_COLUMNS,
  keyTermsFromRow,
  keyTermsToRowValues,
} from "../../src/shared/key-terms.ts";
import type { KeyTerms } from "../../src/shared/key-terms.ts";
import { budgetsFromFields } from "../../src/shared/budgets.ts";
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
  budgets: budgetsFromFields([{ limit_dollars: 1, window: "60m" }]),
  mayHold: true,
};

/** Returns the limits that are read from a row with these columns. */
function inRow(terms: KeyTerms, columns: readonly string[]): KeyTerms {
  const values = keyTermsToRowValues(terms, columns);
  const more = values.at(-1) ?? null;
  const row = Object.fromEntries(columns.map((name, at) => [name, values[at] ?? null]));
  return keyTermsFromRow({ ...row, more: more === null ? null : String(more) });
}

describe("a set of key limits", () => {
  it("stays equal when stored in a database row and in a Durable Object", () => {
    for (const terms of [
      FULL,
      EMPTY_KEY_TERMS,
      { ...EMPTY_KEY_TERMS, allowedModels: ["smart", "a/*"] },
    ]) {
      expect(inRow(terms, KEY_TERM_COLUMNS)).toEqual(terms);
      expect(inRow(terms, ["tpm_limit"])).toEqual(terms); // a limit without its own column
      expect(keyTermsFromJson(keyTermsToJson(terms))).toEqual(terms);
    }
    expect(keyTermsToJson(EMPTY_KEY_TERMS)).toBeNull();
  });

  it("counts as set if at least one limit is set, even a budget of 0 or an empty list", () => {
    expect(hasLimits(EMPTY_KEY_TERMS)).toBe(false);
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
      expect([name, hasLimits({ ...EMPTY_KEY_TERMS, [name]: value })]).toEqual([name, true]);
    }
  });
});
