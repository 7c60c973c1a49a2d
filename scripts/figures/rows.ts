/** One line of the table of figures, whatever its last measurement was. */
export type Row = {
  readonly number: number;
  readonly figure: string;
  /** What it is to be; "" where nothing was promised. */
  readonly target: string;
  /** Whether a miss makes the command fail, as having no figure always does. */
  readonly isExact: boolean;
  /** Whether other programs on the machine change the figure. */
  readonly isTimed?: true;
};

/** What a run found for a row. */
export type Finding = {
  readonly row: number;
  /** The figure in words, with what it was taken from. */
  readonly measured: string;
  /** Whether the target is met; null where there is no target, or no figure. */
  readonly isMet: boolean | null;
  /** The figures alone, by name, for `--json`; times in ms, money in micros. */
  readonly values: Readonly<Record<string, number>>;
};

export const ROWS: readonly Row[] = [
  {
    number: 1,
    figure: "runs of the ledger's model without a violation; variants without a guard found",
    target: "all; all",
    isExact: true,
  },
  { number: 2, figure: "overspend in last-credit races", target: "0 micros", isExact: true },
  {
    number: 3,
    figure: "duplicate settlements on a line that doubles and reorders",
    target: "0",
    isExact: true,
  },
  {
    number: 4,
    figure: "ledger against balance; wallet against D1, after a mixed load",
    target: "0; 0 micros",
    isExact: true,
  },
  {
    number: 5,
    figure: "most admissions in any 60 s, over the limit",
    target: "1.00",
    isExact: true,
  },
  {
    number: 6,
    figure: "admissions while the wallet is evicted again and again, limit 60",
    target: "60",
    isExact: true,
  },
  {
    number: 7,
    figure: "revocation: admitted after DELETE has answered; notice at the peer",
    target: "0; p99 1 s",
    isExact: true,
    isTimed: true,
  },
  {
    number: 8,
    figure: "clients that leave: settled at every byte; billed against true tokens",
    target: "100 %",
    isExact: true,
    isTimed: true,
  },
  {
    number: 9,
    figure: "invalid keys: object calls and D1 queries; refused per second",
    target: "0",
    isExact: true,
    isTimed: true,
  },
  {
    number: 10,
    figure: "added latency against the upstream asked directly",
    target: "first byte p50 3 ms",
    isExact: false,
    isTimed: true,
  },
  { number: 11, figure: "knee on 2 cores", target: "", isExact: false, isTimed: true },
  { number: 12, figure: "fuzzed inputs; 500s", target: "0", isExact: true },
  {
    number: 13,
    figure: "recovery after home was down; oldest hold",
    target: "",
    isExact: false,
    isTimed: true,
  },
  { number: 14, figure: "cells of the fault matrix that hold", target: "all", isExact: true },
  {
    number: 15,
    figure: "shortfall and charges by estimate, mixed load",
    target: "0 micros",
    isExact: true,
  },
  {
    number: 16,
    figure: "others' p99 beside one hot organisation",
    target: "+ 20 %",
    isExact: false,
    isTimed: true,
  },
];

/** A finding for a row that nothing could be measured for: the cell says why. */
export function unmeasured(row: number, why: string): Finding {
  return { row, measured: `not measured: ${why}`, isMet: null, values: {} };
}

/** Whether a run with these findings has failed: an exact target is missed, or there is no figure at all. */
export function missed(findings: readonly Finding[]): readonly number[] {
  return findings
    .filter(({ row, isMet, values }) => {
      const isExact = ROWS.some((one) => one.number === row && one.isExact);
      return (isExact && isMet !== true) || Object.keys(values).length === 0;
    })
    .map(({ row }) => row);
}
