/** What is wrong, or must be known, before a deploy; nothing in it is ever a secret's value. */
export type Finding = {
  /** An error keeps the deploy from working, or from being safe; a note is always said. */
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
