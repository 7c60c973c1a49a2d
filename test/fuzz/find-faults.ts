import * as fc from "fast-check";
import { recordMeasured } from "../measured.ts";
import { effortFor } from "../effort.ts";

const env = import.meta.env as Readonly<Record<string, unknown>>;
/** The number of inputs of all fuzzers together. */
export const INPUTS = effortFor(10_000, 1_000_000);
/**
 * The default seed, also for long runs, so that findings can be repeated. TURNPIKE_SEED overrides
 * it.
 */
const SEED = Number(env["TURNPIKE_SEED"] || 20_261_121);
/** The timeout of each fuzzer's test, including long runs. */
export const TIMEOUT_MS = 4 * 3_600_000;

/**
 * The share of each fuzzer per thousand inputs. Cheap ones get most, the whole application least.
 */
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

/** Returns a fuzzer's number of inputs in this run. */
export function runsOf(fuzzer: Fuzzer): number {
  return (INPUTS * SHARES[fuzzer]) / 1000;
}

/** The fuzzers, which get all inputs together. */
export const FUZZERS = Object.keys(SHARES) as readonly Fuzzer[];

/** The result of checking an input, so that a fuzzer can report that it met both. */
export type CheckResult = "accepted" | "refused";

/** The check of a fuzzer's inputs. It throws for a fault. */
type Checking<T> = {
  readonly inputs: fc.Arbitrary<T>;
  readonly check: (input: T) => CheckResult | Promise<CheckResult>;
  /** Formats the input as it is sent, for reports. */
  readonly show: (input: T) => string;
  /** Minimum percentage of accepted and of rejected inputs, by default 2. */
  readonly least?: number;
};

/**
 * Checks the fuzzer's share of inputs. Returns "", or a report of the first failing input,
 * minimized, with the seed. Also fails if almost no input was accepted or rejected, because it then
 * tests nothing.
 */
export async function findFaults<T>(fuzzer: Fuzzer, checking: Checking<T>): Promise<string> {
  const numRuns = runsOf(fuzzer);
  const met = { accepted: 0, refused: 0 };
  const property = fc.asyncProperty(checking.inputs, async (input) => {
    met[await checking.check(input)]++;
  });
  const result = await fc.check(property, { numRuns, seed: SEED });
  recordMeasured({ inputs: result.numRuns, faults: result.failed ? 1 : 0 });
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

/** Fails the current input with these facts if the condition is false. */
export function mustHold(holds: boolean, what: string, ...facts: readonly unknown[]): void {
  if (!holds) throw new Error([what, ...facts.map((fact) => JSON.stringify(fact))].join("\n"));
}

/** Fails the current input unless both values are equal as JSON. */
export function mustEqual(found: unknown, expected: unknown, what: string): void {
  mustHold(JSON.stringify(found) === JSON.stringify(expected), what, found, expected);
}
