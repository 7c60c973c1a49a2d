/** The Worker's text variables ("" if unset), and a function that reports a variable's problem. */
export type ConfigVariables = {
  readonly text: (variable: string) => string;
  readonly sandbox: boolean;
  readonly addProblem: (variable: string, problem: string) => void;
};
