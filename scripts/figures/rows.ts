import { RISE_PERCENT_MAX } from "../bench/hot.ts";

/** What measures a row: tests of some files, as `npm test` or, `inFull`, as `npm run test:long` runs them; or a mode of the bench. */
export type Source =
  | { readonly tests: string; readonly named?: string; readonly inFull?: true }
  | { readonly bench: readonly string[] };

/**
 * Figures by name: the sums of what tests kept with `measured`, beside `tests`, how many ran; or what the bench
 * prints. NaN for one that nothing measured. Times in ms, money in micros.
 */
export type Values = (name: string) => number;

/** One line of the table of figures. */
export type Row = {
  readonly figure: string;
  /** What it is to be; "" where nothing was promised. */
  readonly target: string;
  readonly sources: readonly Source[];
  readonly words: (v: Values) => string;
  /** Whether the target is met, once every test has passed; null where there is none. */
  readonly isMet: (v: Values) => boolean | null;
  /** Whether a miss of the target is said and no more; any other makes the command fail, as having no figure does. */
  readonly isAim?: true;
  /** Whether other programs on the machine change the figure. */
  readonly isTimed?: true;
};

const count = (value: number): string => value.toLocaleString("en-US");
const short = (value: number): string =>
  Number.isNaN(value) ? "?" : value.toFixed(Math.abs(value) >= 100 ? 0 : 1);
const signed = (value: number): string => `${value < 0 ? "" : "+"}${value.toFixed(1)} %`;

/** A test of `npm run test:long`, or those of its tests that are called so. */
const long = (name: string, named?: string): Source => ({
  tests: `test/node/${name}.long.test.ts`,
  inFull: true,
  ...(named === undefined ? {} : { named }),
});

const MIXED_LOAD: readonly Source[] = [long("mixed-load")];
const mixedLoad = (v: Values): string =>
  `${v("requests")} requests, ${v("organizations")} organisations, both regions`;

const MOMENTS = {
  JSON: "JSON, total",
  "stream first byte": "stream, first byte",
  "stream total": "stream, total",
} as const;
const addedAt = (v: Values, place: string): string => {
  const parts = Object.entries(MOMENTS).map(([name, moment]) => {
    const [p50, p99] = ["p50", "p99"].map((share) =>
      short(v(`${place}: ${moment}, ${share}, over direct`)),
    );
    return `${name} ${p50} / ${p99}`;
  });
  return `${place}: ${parts.join(", ")}`;
};
const FIRST_BYTE = "home: stream, first byte, p50, over direct";
const FIRST_BYTE_MS_MAX = 3;

const kneeOf = (v: Values, which: string): string => {
  const of = (what: string): number => v(`knee ${which}, ${what}`);
  return `${Math.round(of("rate"))} req/s (p50 ${short(of("p50 at it"))}, p99 ${short(of("p99 at it"))} ms) ${which}`;
};

const HOT_PAIRS = 5;
const riseOf = (v: Values, moment: string): string => {
  const of = (what: string): number => v(`others' ${moment}, p99, ${what}`);
  return `${signed(of("rise"))} (${short(of("alone"))} to ${short(of("beside"))} ms)`;
};

/** In the order of their numbers, which begin with 1. */
export const ROWS: readonly Row[] = [
  {
    figure: "runs of the ledger's model without a violation; variants without a guard found",
    target: "all; all",
    sources: [
      { tests: "test/wallet/ledger-model.pure.test.ts" },
      { tests: "test/wallet/broken-guards.pure.test.ts", inFull: true },
    ],
    words: (v) => `${count(v("runs"))} runs; ${v("guards")} lines of source changed, each found`,
    isMet: (v) => v("runs") > 0 && v("guards") > 0,
  },
  {
    figure: "overspend in last-credit races",
    target: "0 micros",
    sources: [long("last-credits")],
    words: (v) =>
      `${v("overspend")} micros in ${v("races")} races of ${v("requests") / v("races")} at once; ` +
      `${v("served")} of ${v("requests")} served, balance below zero by ${v("belowZero")}`,
    isMet: (v) =>
      v("overspend") === 0 &&
      v("belowZero") === 0 &&
      v("served") > 0 &&
      v("served") < v("requests"),
  },
  {
    figure: "duplicate settlements on a line that doubles and reorders",
    target: "0",
    sources: [long("settlement")],
    words: (v) =>
      `${v("repeated")} of ${count(v("flights"))} requests; ${v("doubled")} messages doubled, ${v("reordered")} reordered`,
    isMet: (v) => v("flights") > 0 && v("doubled") > 0 && v("repeated") === 0,
  },
  {
    figure: "ledger against balance; wallet against D1, after a mixed load",
    target: "0; 0 micros",
    sources: MIXED_LOAD,
    words: (v) =>
      `${v("ledgerOff")}; ${v("bookOff")} micros, ${v("openHolds")} open holds (${mixedLoad(v)})`,
    isMet: (v) => v("ledgerOff") + v("bookOff") + v("openHolds") === 0 && v("charges") > 0,
  },
  {
    figure: "most admissions in any 60 s, over the limit",
    target: "1.00",
    sources: [
      { tests: "test/keys/registers.pure.test.ts" },
      long("limit-of-a-minute", "a key pressed"),
    ],
    words: (v) => {
      const others = ["fixed window", "sliding counter", "token bucket"];
      return (
        `${v("ours").toFixed(2)}; ${others.map((name) => `${name} ${v(name).toFixed(2)}`).join(", ")} ` +
        `(4 patterns, limits 60 and 1000); a real key pressed for 66 s: ` +
        `${(v("most") / v("limit")).toFixed(2)}, ${v("admitted")} of ${v("asked")}`
      );
    },
    // it must also be admitted again once its first burst is a minute old
    isMet: (v) => v("ours") === 1 && v("most") === v("limit") && v("admitted") > v("limit"),
  },
  {
    figure: "admissions while the wallet is evicted again and again, limit 60",
    target: "60",
    sources: [long("limit-of-a-minute", "a key whose wallet is evicted")],
    words: (v) =>
      `${v("evictedAdmitted")} of ${v("offered")} requests, ${v("evictions")} evictions`,
    isMet: (v) => v("evictedAdmitted") === 60 && v("evictions") > 0,
  },
  {
    figure: "revocation: admitted after DELETE has answered; notice at the peer",
    target: "0; p99 1 s",
    sources: [
      long("revocation-under-load"),
      long("global-revocation", "503 at the peer, never 200"),
    ],
    words: (v) =>
      `${v("admitted")} of ${count(v("asked"))} requests in both regions (${v("keys")} keys), ` +
      `${v("admittedCut")} of ${v("askedCut")} with the link cut; notice p50 ${v("p50")}, p99 ${v("p99")}, max ${v("max")} ms`,
    isMet: (v) =>
      v("asked") > 0 &&
      v("askedCut") > 0 &&
      v("admitted") + v("admittedCut") === 0 &&
      v("p99") <= 1000,
    isTimed: true,
  },
  {
    figure: "clients that leave: settled at every byte; billed against true tokens",
    target: "100 %",
    sources: [{ tests: "test/node/disconnect.test.ts", inFull: true }, long("left-streams")],
    words: (v) =>
      `${count(v("points"))} byte offsets; ${v("charged")} of ${v("clients")} paced streams charged with DRAIN_S 1: ` +
      `${v("charged") - v("estimated")} by usage, off by ${v("reportedWorst").toFixed(1)} %, ` +
      `${v("estimated")} by estimate, off by p50 ${v("p50").toFixed(1)} %, p95 ${v("p95").toFixed(1)} % ` +
      `(${v("bias") > 0 ? "over" : "under"} in the median)`,
    isMet: (v) => v("points") > 0 && v("clients") > 0 && v("charged") === v("clients"),
    isTimed: true,
  },
  {
    figure: "invalid keys: object calls and D1 queries",
    target: "0",
    sources: [{ tests: "test/contract/forged-keys.test.ts" }],
    words: (v) => `${v("operations")} for ${count(v("forged"))} keys`,
    isMet: (v) => v("operations") === 0 && v("forged") > 0,
  },
  {
    figure: "added latency against the upstream asked directly",
    target: "first byte p50 3 ms",
    sources: [{ bench: [] }],
    words: (v) => `p50 / p99 in ms, ${addedAt(v, "home")}; ${addedAt(v, "peer")}`,
    isMet: (v) => (Number.isNaN(v(FIRST_BYTE)) ? null : v(FIRST_BYTE) <= FIRST_BYTE_MS_MAX),
    isAim: true,
    isTimed: true,
  },
  {
    figure: "knee on 2 cores",
    target: "",
    sources: [{ bench: ["--knee"] }],
    words: (v) =>
      `${kneeOf(v, "in all")}; ${kneeOf(v, "of one organisation")}; load and upstream on the same machine`,
    isMet: () => null,
    isAim: true,
    isTimed: true,
  },
  {
    figure: "fuzzed inputs; 500s",
    target: "0",
    // all but the test of the fuzzer itself, which has faults to find
    sources: [{ tests: "test/fuzz", named: "^(?!a fuzzer )" }],
    words: (v) =>
      `${count(v("inputs"))} inputs, ${v("faults")} faults; ` +
      `${v("internal")} of ${count(v("answers"))} answers of the whole application were a 500`,
    isMet: (v) => v("faults") + v("internal") === 0 && v("inputs") > 0 && v("answers") > 0,
  },
  {
    figure: "answered requests whose charge was lost when their region was killed",
    target: "0",
    sources: [long("restart"), long("settlement-kills")],
    words: (v) =>
      `${v("lost")} of ${count(v("answered"))}, ${v("kills")} kills in mid-load in both regions; ` +
      `${v("stranded")} streams that died with the peer were released`,
    isMet: (v) => v("lost") === 0 && v("kills") > 0 && v("answered") > 0,
  },
  {
    figure: "cells of the fault matrix that hold",
    target: "all",
    sources: [
      long("fault-matrix", " x "),
      { tests: "test/wallet/fault-matrix-", named: " x (?!.*n/a)", inFull: true },
    ],
    words: (v) => `all ${v("tests")}`,
    isMet: (v) => v("tests") > 0,
  },
  {
    figure: "shortfall and charges by estimate, mixed load",
    target: "0 micros",
    sources: MIXED_LOAD,
    words: (v) =>
      `${v("shortfall")} micros; ${((100 * v("estimated")) / v("charges")).toFixed(1)} % of ${v("charges")} charges ` +
      `(${mixedLoad(v)}, an eighth of the clients leave, with DRAIN_S 1)`,
    isMet: (v) => v("shortfall") === 0 && v("charges") > 0,
  },
  {
    figure: "others' p99 beside one hot organisation",
    target: "+ 20 %",
    sources: [{ bench: ["--hot", "--rounds", String(HOT_PAIRS), "--seconds", "8"] }],
    words: (v) =>
      `first byte ${riseOf(v, "first byte")}, whole ${riseOf(v, "total")}; ` +
      `median of ${HOT_PAIRS} paired runs, ${Math.round(v("hot one's shed"))} % of the hot one's shed`,
    isMet: (v) =>
      Math.max(v("others' first byte, p99, rise"), v("others' total, p99, rise")) <=
        RISE_PERCENT_MAX &&
      v("others not served") === 0 &&
      v("hot one's shed") > 0,
    isAim: true,
    isTimed: true,
  },
];
