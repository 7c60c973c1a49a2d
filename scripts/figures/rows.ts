/**
 * A row's source: tests as in `npm test`, or with `inFull` as in `npm run test:long`, or a bench
 * mode.
 */
export type Source =
  | { readonly tests: string; readonly named?: string; readonly inFull?: true }
  | { readonly bench: readonly string[] };

/**
 * A row of the table of figures. `words` names figures in braces: sums of the tests' `measured`
 * values, `tests` (the number that ran), or figures of the bench. A failed test or a figure above
 * its budget misses the target.
 */
export type Row = {
  readonly figure: string;
  /** The target, or "" for none. */
  readonly target: string;
  readonly sources: readonly Source[];
  readonly words: string;
};

/** Returns a long test as a source. With `named`, the source has only the tests with this name. */
const long = (name: string, named?: string): Source => {
  const tests = `test/node/${name}.long.test.ts`;
  return named === undefined ? { tests, inFull: true } : { tests, named, inFull: true };
};
const MIXED_LOAD = "{requests} requests, {organizations} organizations, both regions";
const added = (place: string): string =>
  ["JSON, total", "stream, first byte", "stream, total"]
    .map((moment) => {
      const at = (share: string) => `{${place}: ${moment}, ${share}, over direct}`;
      return `${moment} ${at("p50")} / ${at("p99")}`;
    })
    .join("; ");
const rise = (of: string): string =>
  `{others' ${of}, p99, rise} % ({others' ${of}, p99, alone} to {others' ${of}, p99, beside} ms)`;

/** Rows in the order of their numbers, which start at 1. */
export const ROWS: readonly Row[] = [
  {
    figure: "ledger model runs without a violation; broken guards detected",
    target: "all; all",
    sources: [
      { tests: "test/wallet/ledger-model.pure.test.ts" },
      { tests: "test/wallet/broken-guards.pure.test.ts", inFull: true },
    ],
    words: "{runs} runs; {guards} lines of source changed, each found",
  },
  {
    figure: "overspend in races for the last credits",
    target: "0 micros",
    sources: [long("last-credits")],
    words:
      "{overspend} micros in {races} races of concurrent requests; {served} of {requests} served, balance below zero by {belowZero}",
  },
  {
    figure: "duplicate settlements on a link that duplicates and reorders messages",
    target: "0",
    sources: [long("settlement")],
    words: "{repeated} of {flights} requests; {doubled} messages duplicated, {reordered} reordered",
  },
  {
    figure: "difference of ledger and balance, and of wallet and D1, after a mixed load",
    target: "0; 0 micros",
    sources: [long("mixed-load")],
    words: `{ledgerOff}; {bookOff} micros, {openHolds} open holds (${MIXED_LOAD})`,
  },
  {
    figure: "maximum admissions in any 60 s, relative to the limit",
    target: "1",
    sources: [
      { tests: "test/keys/rate-limiters.pure.test.ts" },
      long("rate-limit", "a key under constant load"),
    ],
    words:
      "{ours}; fixed window {fixed window}, sliding counter {sliding counter}, token bucket {token bucket}; " +
      "a real key under load for 66 s: {most} in any 60 s of {limit}, {admitted} of {asked} in all",
  },
  {
    figure: "admissions while the wallet is repeatedly evicted, limit 60",
    target: "60",
    sources: [long("rate-limit", "if its wallet is evicted after each")],
    words: "{evictedAdmitted} of {offered} requests, {evictions} evictions",
  },
  {
    figure: "requests admitted after DELETE returned; delay of the peer's notice",
    target: "0; p99 1 s",
    sources: [
      long("revocation-under-load"),
      long("global-revocation", "gets 503 and never 200 in the other region"),
    ],
    words:
      "{admitted} of {asked} requests in both regions ({keys} keys), " +
      "{admittedCut} of {askedCut} with the link cut; notice p50 {p50}, p99 {p99}, max {max} ms",
  },
  {
    figure: "disconnects settled, at every byte; charge compared with real tokens",
    target: "100 %",
    sources: [
      { tests: "test/node/disconnect.test.ts", inFull: true },
      long("disconnected-streams"),
    ],
    words:
      "{points} byte offsets; {charged} of {clients} paced streams charged with DRAIN_S 1, those with reported usage " +
      "off by {reportedWorst} %, {estimated} by estimate off by p50 {p50} %, p95 {p95} % (median {bias} %)",
  },
  {
    figure: "object calls and D1 queries for invalid keys",
    target: "0",
    sources: [{ tests: "test/contract/forged-keys.test.ts" }],
    words: "{operations} for {forged} keys",
  },
  {
    figure: "added latency, compared with direct calls to the provider",
    target: "first byte p50 3 ms",
    sources: [{ bench: [] }],
    words: `p50 / p99 in ms, home: ${added("home")}; peer: ${added("peer")}`,
  },
  {
    figure: "faults and 500s with fuzzed inputs",
    target: "0",
    // All tests except the fuzzer's own test, which finds planted faults.
    sources: [{ tests: "test/fuzz", named: "^(?!a fuzzer )" }],
    words:
      "{inputs} inputs, {faults} faults; {internal} of {answers} responses of the application were a 500",
  },
  {
    figure: "charges lost when the region was killed after the response",
    target: "0",
    sources: [long("restart"), long("settlement-kills")],
    words:
      "{lost} of {answered}, {kills} kills under load in both regions; " +
      "{stranded} streams that ended with the peer were released",
  },
  {
    figure: "passing cells of the fault matrix",
    target: "all",
    sources: [
      long("fault-matrix", " x "),
      { tests: "test/wallet/fault-matrix-", named: " x (?!.*n/a)", inFull: true },
    ],
    words: "all {tests}",
  },
  {
    figure: "shortfall and estimated charges after a mixed load",
    target: "0 micros",
    sources: [long("mixed-load")],
    words: `{shortfall} micros; {estimated} of {charges} charges (${MIXED_LOAD}, an eighth of the clients disconnect, with DRAIN_S 1)`,
  },
  {
    figure: "increase of other organizations' p99 next to one hot organization",
    target: "+ 20 %",
    sources: [{ bench: ["--hot", "--rounds", "5", "--seconds", "8"] }],
    words: `first byte ${rise("first byte")}, whole ${rise("total")}; median of 5 paired runs, {hot one's shed} % of the hot one's requests rejected`,
  },
];
