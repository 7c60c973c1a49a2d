import type { Finding } from "./rows.ts";

/** What a producer works with. */
export type Bench = {
  /** An empty directory of its own, in memory where there is a tmpfs. */
  readonly scratch: string;
  /** Says on the terminal what is being done. */
  readonly say: (what: string) => void;
};

/** What measures some rows; a throw is a figure that could not be measured, with its message as the reason. */
export type Producer = {
  readonly rows: readonly number[];
  readonly what: string;
  /** How long it takes on two cores, roughly. */
  readonly seconds: number;
  readonly produce: (bench: Bench) => Promise<readonly Finding[]>;
};
