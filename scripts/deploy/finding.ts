/** A problem or fact before a deploy. It never contains a secret's value. */
export type Finding = {
  /** An error prevents a working or safe deploy. A note is always shown. */
  readonly level: "error" | "warning" | "note";
  /** The setting, var or secret that it is about. */
  readonly where: string;
  readonly problem: string;
  readonly remedy: string;
};

/** A finding of each level, with its words in order: where, problem, remedy. */
export const error = (...words: Words): Finding => finding("error", words);
export const warning = (...words: Words): Finding => finding("warning", words);
export const note = (...words: Words): Finding => finding("note", words);

type Words = readonly [where: string, problem: string, remedy: string];

function finding(level: Finding["level"], [where, problem, remedy]: Words): Finding {
  return { level, where, problem, remedy };
}

/** The findings whose condition holds. */
export function those(
  ...checks: readonly (readonly [holds: boolean, found: Finding])[]
): Finding[] {
  return checks.filter(([holds]) => holds).map(([, found]) => found);
}
