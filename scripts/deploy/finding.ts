/** A problem or fact before a deploy. Never contains the value of a secret. */
export type Finding = {
  /** An error prevents a working or safe deploy. Notes are always shown. */
  readonly level: "error" | "warning" | "note";
  /** The setting, variable or secret with the problem. */
  readonly where: string;
  readonly problem: string;
  readonly remedy: string;
};

/** Returns an error with the texts `where`, `problem` and `remedy`. */
export const error = (...words: Words): Finding => finding("error", words);
export const warning = (...words: Words): Finding => finding("warning", words);
export const note = (...words: Words): Finding => finding("note", words);

type Words = readonly [where: string, problem: string, remedy: string];

function finding(level: Finding["level"], [where, problem, remedy]: Words): Finding {
  return { level, where, problem, remedy };
}

/** Returns the findings whose condition holds. */
export function findingsThatHold(
  ...checks: readonly (readonly [holds: boolean, found: Finding])[]
): Finding[] {
  return checks.filter(([holds]) => holds).map(([, found]) => found);
}
