import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { failuresOf, IN_FULL, runTests, sumOf, withFailures } from "./vitest-report.ts";
import type { RanTest } from "./vitest-report.ts";

const count = (value: number): string => value.toLocaleString("en-US");

/** Row 3: settlements counted twice while messages are doubled. */
export function settlementFinding(tests: readonly RanTest[]): Finding {
  const values = {
    flights: sumOf(tests, "flights"),
    doubled: sumOf(tests, "doubled"),
    reordered: sumOf(tests, "reordered"),
    repeated: sumOf(tests, "repeated"),
  };
  const { flights, doubled, reordered, repeated } = values;
  const text = `${repeated} of ${count(flights)} requests; ${doubled} messages doubled, ${reordered} reordered`;
  const isMet = failuresOf(tests) === 0 && flights > 0 && doubled > 0 && repeated === 0;
  return { row: 3, measured: withFailures(text, tests), isMet, values };
}

/** Row 7: what was admitted after DELETE had answered, with the line up and cut. */
export function revocationFinding(tests: readonly RanTest[]): Finding {
  const loaded = tests.filter((one) => one.measured["p99"] !== undefined);
  const cut = tests.filter((one) => one.measured["p99"] === undefined);
  const [p50, p99, max] = ["p50", "p99", "max"].map((name) => sumOf(loaded, name));
  const values = {
    keys: sumOf(loaded, "keys"),
    asked: sumOf(loaded, "asked"),
    admitted: sumOf(loaded, "admitted"),
    askedCut: sumOf(cut, "asked"),
    admittedCut: sumOf(cut, "admitted"),
    p50: p50 ?? NaN,
    p99: p99 ?? NaN,
    max: max ?? NaN,
  };
  const text =
    `${values.admitted} of ${count(values.asked)} requests in both regions (${values.keys} keys), ` +
    `${values.admittedCut} of ${values.askedCut} with the link cut; ` +
    `notice p50 ${values.p50}, p99 ${values.p99}, max ${values.max} ms`;
  const isMet =
    failuresOf(tests) === 0 &&
    values.asked > 0 &&
    values.askedCut > 0 &&
    values.admitted + values.admittedCut === 0 &&
    values.p99 <= 1000;
  return { row: 7, measured: withFailures(text, tests), isMet, values };
}

/** Row 12: inputs of all fuzzers, and 500s among what the application answered. */
export function fuzzFinding(tests: readonly RanTest[]): Finding {
  const values = {
    inputs: sumOf(tests, "inputs"),
    faults: sumOf(tests, "faults"),
    // counted per file: every test of it says how many there were so far
    answers: sumOfMost(tests, "answers"),
    internal: sumOfMost(tests, "internal"),
  };
  const { inputs, faults, answers, internal } = values;
  const text = `${count(inputs)} inputs, ${faults} faults; ${internal} of ${count(answers)} answers of the whole application were a 500`;
  const isMet = failuresOf(tests) + faults + internal === 0 && inputs > 0 && answers > 0;
  return { row: 12, measured: withFailures(text, tests), isMet, values };
}

/** Row 14: cells of the fault matrix; one that says n/a is none. */
export function matrixFinding(tests: readonly RanTest[]): Finding {
  const named = tests.filter(({ title }) => title.includes(" x "));
  const cells = named.filter(({ title }) => !title.includes(": n/a"));
  const holding = cells.filter((one) => one.hasPassed).length;
  const values = { cells: cells.length, holding, notApplicable: named.length - cells.length };
  const text = `${holding} of ${cells.length} (${values.notApplicable} not applicable)`;
  const isMet = failuresOf(tests) === 0 && cells.length > 0 && holding === cells.length;
  return { row: 14, measured: withFailures(text, tests), isMet, values };
}

export const FROM_TESTS: readonly Producer[] = [
  {
    rows: [3],
    what: "settlement over a line that doubles and reorders",
    seconds: 12,
    produce: async ({ scratch }) => [
      settlementFinding(await runTests(scratch, ["test/node/settlement.long.test.ts"])),
    ],
  },
  {
    rows: [7],
    what: "revocation under load and with the link cut",
    seconds: 20,
    produce: async ({ scratch }) => [
      revocationFinding([
        ...(await runTests(scratch, ["test/node/revocation-under-load.long.test.ts"])),
        ...(await runTests(scratch, ["test/node/global-revocation.long.test.ts"], {
          name: "503 at the peer, never 200",
        })),
      ]),
    ],
  },
  {
    rows: [12],
    what: "fuzzing",
    seconds: 20,
    produce: async ({ scratch }) => [
      // all but the test of the fuzzer itself, which has faults to find
      fuzzFinding(
        await runTests(scratch, ["test/fuzz"], {
          parameters: ["--exclude", "test/fuzz/faults-of.pure.test.ts"],
        }),
      ),
    ],
  },
  {
    rows: [14],
    what: "the fault matrix",
    seconds: 35,
    produce: async ({ scratch }) => [
      matrixFinding([
        ...(await runTests(scratch, ["test/node/fault-matrix.long.test.ts"], IN_FULL)),
        ...(await runTests(scratch, ["test/wallet/fault-matrix-"])),
      ]),
    ],
  },
];

function sumOfMost(tests: readonly RanTest[], name: string): number {
  const most = new Map<string, number>();
  for (const { file, measured } of tests) {
    most.set(file, Math.max(most.get(file) ?? 0, measured[name] ?? 0));
  }
  return [...most.values()].reduce((sum, one) => sum + one, 0);
}
