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
    figure: "runs of the ledger model without a violation; broken guards that the tests detect",
    target: "all; all",
    sources: [
      { tests: "test/wallet/ledger-model.pure.test.ts" },
      { tests: "test/wallet/broken-guards.pure.test.ts", inFull: true },
    ],
    words: "{runs} runs broke no rule; the tests detected all {guards} broken guards",
  },
  {
    figure: "overspend when concurrent requests race for the last credits",
    target: "0 micro-credits",
    sources: [long("last-credits")],
    words:
      "{overspend} micro-credits were overspent in {races} races of concurrent requests; {served} of {requests} requests were served, and the balance went below zero by {belowZero}",
  },
  {
    figure: "requests settled twice over a link that duplicates and reorders messages",
    target: "0",
    sources: [long("settlement")],
    words:
      "{repeated} of {flights} requests were settled twice; the link duplicated {doubled} messages and reordered {reordered} messages",
  },
  {
    figure: "differences between ledger and balance, and between wallet and D1, after a mixed load",
    target: "0; 0 micro-credits",
    sources: [long("mixed-load")],
    words: `ledgers and balances differ by {ledgerOff} micro-credits, wallets and D1 by {bookOff}; {openHolds} holds stayed open (${MIXED_LOAD})`,
  },
  {
    figure: "maximum number of admissions in any 60 s, as a multiple of the limit",
    target: "1",
    sources: [
      { tests: "test/keys/rate-limiters.pure.test.ts" },
      long("rate-limit", "a key under constant load"),
    ],
    words:
      "Turnpike admits {ours} times the limit, a fixed window {fixed window}, a sliding counter {sliding counter} and a token bucket {token bucket} times; " +
      "a real key under load for 66 s got at most {most} admissions in any 60 s, with a limit of {limit}, and {admitted} admissions for {asked} requests in all",
  },
  {
    figure: "admissions while the wallet is repeatedly evicted, with a limit of 60",
    target: "60",
    sources: [long("rate-limit", "if its wallet is evicted after each")],
    words: "{evictedAdmitted} of {offered} requests were admitted during {evictions} evictions",
  },
  {
    figure:
      "requests accepted after a key was revoked; time until the other region receives the revocation",
    target: "0 requests; p99 at most 1 s",
    sources: [
      long("revocation-under-load"),
      long("global-revocation", "gets 503 and never 200 in the other region"),
    ],
    words:
      "{admitted} of {asked} requests to both regions were accepted after the revocation of their key ({keys} keys), " +
      "and {admittedCut} of {askedCut} while the link between the regions was cut; " +
      "the other region received a revocation after {p50} ms (p50), {p99} ms (p99), and at most after {max} ms",
  },
  {
    figure: "disconnects that are settled, at every byte of a stream; errors of the charges",
    target: "100 %",
    sources: [
      { tests: "test/node/disconnect.test.ts", inFull: true },
      long("disconnected-streams"),
    ],
    words:
      "disconnects were tested at {points} byte offsets; with DRAIN_S 1, {charged} of {clients} paced streams were charged: " +
      "charges for reported usage were off by at most {reportedWorst} %, " +
      "and {estimated} estimated charges by {p50} % (p50) and {p95} % (p95), with a median error of {bias} %",
  },
  {
    figure: "Durable Object calls and D1 queries for forged keys",
    target: "0",
    sources: [{ tests: "test/contract/forged-keys.test.ts" }],
    words: "{forged} forged keys caused {operations} Durable Object calls and D1 queries",
  },
  {
    figure: "added latency, compared with direct calls to the provider",
    target: "p50 of a stream's first byte at most 3 ms",
    sources: [{ bench: [] }],
    words: `added p50 / p99 in ms in the key's home region: ${added("home")}; in the other region: ${added("peer")}`,
  },
  {
    figure: "faults and 500 responses with fuzzed inputs",
    target: "0",
    // All tests except the fuzzer's own test, which finds planted faults.
    sources: [{ tests: "test/fuzz", named: "^(?!a fuzzer )" }],
    words:
      "{inputs} fuzzed inputs caused {faults} faults; {internal} of the application's {answers} responses had the status 500",
  },
  {
    figure: "charges lost when the region was killed after the response",
    target: "0",
    sources: [long("restart"), long("settlement-kills")],
    words:
      "{lost} of {answered} requests lost their charge in {kills} kills under load in both regions; " +
      "the holds of {stranded} streams that a kill interrupted were released",
  },
  {
    figure: "cells of the fault matrix that pass",
    target: "all",
    sources: [
      long("fault-matrix", " x "),
      { tests: "test/wallet/fault-matrix-", named: " x (?!.*n/a)", inFull: true },
    ],
    words: "all {tests} cells of the fault matrix pass",
  },
  {
    figure: "shortfall and estimated charges after a mixed load",
    target: "0 micro-credits",
    sources: [long("mixed-load")],
    words: `the shortfall was {shortfall} micro-credits; {estimated} of {charges} charges were estimated (${MIXED_LOAD}, DRAIN_S 1; an eighth of the clients disconnected)`,
  },
  {
    figure:
      "increase in other organizations' p99 latency while one organization sends too many requests",
    target: "at most 20 %",
    sources: [{ bench: ["--hot", "--rounds", "5", "--seconds", "8"] }],
    words: `the p99 of the first byte rose by ${rise("first byte")}, the p99 of the whole response by ${rise("total")}; medians of 5 paired runs, in which {hot one's shed} % of the overloading organization's requests were rejected`,
  },
];
