import * as fc from "fast-check";
import { measured } from "../measured.ts";
import { effort } from "../effort.ts";

const env = import.meta.env as Readonly<Record<string, unknown>>;
/** How many inputs all fuzzers get together. */
export const INPUTS = effort(10_000, 1_000_000);
/** Of a long run too: what it found once is found again. Another one is given by TURNPIKE_SEED. */
const SEED = Number(env["TURNPIKE_SEED"] || 20_261_121);
/** For the one test of each fuzzer, long runs included. */
export const TIMEOUT_MS = 4 * 3_600_000;

/** What each fuzzer gets of a thousand inputs: cheap ones most, the whole application least. */
const SHARES = {
  "json text": 125,
  "chat bodies": 40,
  "Messages bodies": 40,
  "Responses bodies": 40,
  "embeddings bodies": 80,
  "other bodies": 100,
  "messages between regions": 80,
  "operators' variables": 40,
  "event streams": 90,
  "upstream streams": 80,
  providers: 60,
  "query strings": 50,
  "paths as routed": 40,
  keys: 60,
  signatures: 20,
  "requests to the application": 30,
  "writes to the application": 10,
  "paid requests": 10,
  "messages of a peer": 5,
} as const;
type Fuzzer = keyof typeof SHARES;

/** How many inputs a fuzzer gets in this run. */
export function runsOf(fuzzer: Fuzzer): number {
  return (INPUTS * SHARES[fuzzer]) / 1000;
}

/** The fuzzers, and how many of the inputs are given to them in all: every one. */
export const FUZZERS = Object.keys(SHARES) as readonly Fuzzer[];

/** What a check made of an input, so that a fuzzer can say that it met both. */
export type Met = "accepted" | "refused";

/** How a fuzzer's inputs are checked; a check throws for what must not be. */
type Checking<T> = {
  readonly inputs: fc.Arbitrary<T>;
  readonly check: (input: T) => Met | Promise<Met>;
  /** The input as it is sent, for the report of a failure. */
  readonly show: (input: T) => string;
  /** At least so many percent must have been accepted and as many refused, 2 unless said. */
  readonly least?: number;
};

/**
 * Checks as many inputs as are the fuzzer's. "" or, for the first that fails, a report with its seed and
 * what was sent, shrunk. A fuzzer that accepts, or refuses, next to nothing fails too: it tests nothing.
 */
export async function faultsOf<T>(fuzzer: Fuzzer, checking: Checking<T>): Promise<string> {
  const numRuns = runsOf(fuzzer);
  const met = { accepted: 0, refused: 0 };
  const property = fc.asyncProperty(checking.inputs, async (input) => {
    met[await checking.check(input)]++;
  });
  const result = await fc.check(property, { numRuns, seed: SEED });
  measured({ inputs: result.numRuns, faults: result.failed ? 1 : 0 });
  if (result.failed) return reportOf(result, checking);
  const least = (numRuns * (checking.least ?? 2)) / 100;
  const isFair =
    met.accepted + met.refused === numRuns && Math.min(met.accepted, met.refused) >= least;
  return isFair ? "" : `of ${numRuns} inputs ${met.accepted} were accepted, ${met.refused} refused`;
}

function reportOf<T>(result: fc.RunDetails<[T]>, { show }: Checking<T>): string {
  const sent = result.counterexample === null ? "" : show(result.counterexample[0]);
  const why = String(result.errorInstance);
  return `${fc.defaultReportMessage(result)}\nSent: ${sent.slice(0, 2000)}\n${why.slice(0, 2000)}`;
}

/** Fails the input that is checked, unless it holds; the facts are told then. */
export function must(holds: boolean, what: string, ...facts: readonly unknown[]): void {
  if (!holds) throw new Error([what, ...facts.map((fact) => JSON.stringify(fact))].join("\n"));
}

/** Fails the input that is checked, unless both are the same when they are written as JSON. */
export function mustEqual(found: unknown, expected: unknown, what: string): void {
  must(JSON.stringify(found) === JSON.stringify(expected), what, found, expected);
}
