import * as z from "zod/mini";
import { keyTermsFromStored, storedTerms } from "./key-terms.ts";
import type { KeyTerms, StoredKeyTerms } from "./key-terms.ts";

/** Limits of keys that have a column in `key_terms`. The column `more` has the others as JSON. */
export const TERM_COLUMNS = [
  "budget_micro",
  "budget_period",
  "tpm_limit",
  "allowed_models",
  "end_user",
  "expires_at",
] as const;
type TermColumn = (typeof TERM_COLUMNS)[number];

export type KeyTermsRow = Readonly<Record<TermColumn, string | number | null>> & {
  readonly more: string | null;
};

export function keyTermsFromRow({
  more,
  ...columns
}: StoredKeyTerms & Pick<KeyTermsRow, "more">): KeyTerms {
  return keyTermsFromStored({ ...parseOtherTerms(more), ...columns });
}

export function rowValuesOfTerms(
  terms: KeyTerms,
  columns: readonly string[] = TERM_COLUMNS,
): readonly (string | number | null)[] {
  const stored = storedTerms(terms);
  const otherTerms = Object.entries(stored).filter(
    ([name, value]) => !columns.includes(name) && value !== null,
  );
  return [
    ...columns.map((name) => stored[name] ?? null),
    otherTerms.length === 0 ? null : JSON.stringify(Object.fromEntries(otherTerms)),
  ];
}

const otherTermsSchema = z.record(z.string(), z.union([z.string(), z.number()]));

function parseOtherTerms(text: string | null): StoredKeyTerms {
  return text === null ? {} : otherTermsSchema.parse(JSON.parse(text));
}
