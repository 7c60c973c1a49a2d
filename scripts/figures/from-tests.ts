import { runTests, sumOf } from "./programs.ts";
import type { RanTest } from "./programs.ts";
import type { Finding, Producer } from "./table.ts";

/** What tests have measured, in words and as values; whether it is what was promised, if all of them passed. */
type Reading = {
  readonly words: string;
  readonly isMet: boolean;
  readonly values: Readonly<Record<string, number>>;
};
/** Files that run together, with these parameters of vitest; `inFull` as `npm run test:long` does. */
type Files = {
  readonly files: readonly string[];
  readonly inFull?: true;
  readonly parameters?: readonly string[];
};
/** A row that tests measure. */
export type TestedRow = {
  readonly row: number;
  readonly read: (tests: readonly RanTest[]) => Reading;
};

const count = (value: number): string => value.toLocaleString("en-US");

/** The sums of these figures over tests. */
function sums<N extends string>(tests: readonly RanTest[], ...names: N[]): Record<N, number> {
  const pairs = names.map((name) => [name, sumOf(tests, name)] as const);
  return Object.fromEntries(pairs) as Record<N, number>;
}

/** A row whose figures are the sums of these over its tests. */
function summed<N extends string>(
  row: number,
  names: readonly N[],
  read: (values: Record<N, number>, tests: readonly RanTest[]) => Omit<Reading, "values">,
): TestedRow {
  return {
    row,
    read: (tests) => {
      const values = sums(tests, ...names);
      return { ...read(values, tests), values };
    },
  };
}

/** What a row's tests say: met only if all passed, and those that failed are said. */
export function testedFinding({ row, read }: TestedRow, tests: readonly RanTest[]): Finding {
  const { words, isMet, values } = read(tests);
  const failures = tests.filter((one) => !one.hasPassed).length;
  const failed = failures === 0 ? "" : `; ${failures} of ${tests.length} tests failed`;
  return { row, measured: words + failed, isMet: isMet && failures === 0, values };
}

export const RACES = summed(
  2,
  ["races", "requests", "served", "overspend", "belowZero"],
  ({ races, requests, served, overspend, belowZero }) => ({
    words: `${overspend} micros in ${races} races of ${requests / races} at once; ${served} of ${requests} served, balance below zero by ${belowZero}`,
    isMet: overspend === 0 && belowZero === 0 && served > 0 && served < requests,
  }),
);

export const SETTLEMENTS = summed(
  3,
  ["flights", "doubled", "reordered", "repeated"],
  ({ flights, doubled, reordered, repeated }) => ({
    words: `${repeated} of ${count(flights)} requests; ${doubled} messages doubled, ${reordered} reordered`,
    isMet: flights > 0 && doubled > 0 && repeated === 0,
  }),
);

const loadOf = (tests: readonly RanTest[]): string => {
  const { requests, organizations } = sums(tests, "requests", "organizations");
  return `${requests} requests, ${organizations} organisations, both regions`;
};

export const LEDGERS = summed(
  4,
  ["ledgerOff", "bookOff", "openHolds", "charges"],
  ({ ledgerOff, bookOff, openHolds, charges }, tests) => ({
    words: `${ledgerOff}; ${bookOff} micros, ${openHolds} open holds (${loadOf(tests)})`,
    isMet: ledgerOff === 0 && bookOff === 0 && openHolds === 0 && charges > 0,
  }),
);

export const SHORTFALLS = summed(
  15,
  ["shortfall", "charges", "estimated"],
  ({ shortfall, charges, estimated }, tests) => {
    const share = ((100 * estimated) / charges).toFixed(1);
    return {
      words: `${shortfall} micros; ${share} % of ${charges} charges (${loadOf(tests)}, an eighth of the clients leave, with DRAIN_S 1)`,
      isMet: shortfall === 0 && charges > 0,
    };
  },
);

export const LIMIT: TestedRow = {
  row: 5,
  read: (tests) => {
    const algorithms = ["ours", "fixed window", "sliding counter", "token bucket"] as const;
    const ratios = sums(tests, ...algorithms);
    const pressed = sums(tests, "limit", "most", "admitted", "asked");
    const { limit, most, admitted, asked } = pressed;
    const [ours = "", ...others] = algorithms.map((name) => {
      return `${name === "ours" ? "" : `${name} `}${ratios[name].toFixed(2)}`;
    });
    return {
      words:
        `${ours}; ${others.join(", ")} (4 patterns, limits 60 and 1000); ` +
        `a real key pressed for 66 s: ${(most / limit).toFixed(2)}, ${admitted} of ${asked}`,
      // it must also be admitted again once its first burst is a minute old
      isMet: ratios.ours === 1 && most === limit && admitted > limit,
      values: { ...ratios, ...pressed },
    };
  },
};

export const EVICTIONS = summed(
  6,
  ["evictedAdmitted", "offered", "evictions"],
  ({ evictedAdmitted, offered, evictions }) => ({
    words: `${evictedAdmitted} of ${offered} requests, ${evictions} evictions`,
    isMet: evictedAdmitted === 60 && evictions > 0,
  }),
);

export const REVOCATIONS: TestedRow = {
  row: 7,
  read: (tests) => {
    const loaded = tests.filter((one) => one.measured["p99"] !== undefined);
    const cut = tests.filter((one) => one.measured["p99"] === undefined);
    const values = {
      ...sums(loaded, "keys", "asked", "admitted", "p50", "p99", "max"),
      askedCut: sumOf(cut, "asked"),
      admittedCut: sumOf(cut, "admitted"),
    };
    const { keys, asked, admitted, askedCut, admittedCut, p50, p99, max } = values;
    return {
      words:
        `${admitted} of ${count(asked)} requests in both regions (${keys} keys), ` +
        `${admittedCut} of ${askedCut} with the link cut; notice p50 ${p50}, p99 ${p99}, max ${max} ms`,
      isMet: asked > 0 && askedCut > 0 && admitted + admittedCut === 0 && p99 <= 1000,
      values,
    };
  },
};

export const LEAVING: TestedRow = {
  row: 8,
  read: (tests) => {
    const { points } = sums(tests, "points");
    const passed = tests.filter((one) => one.hasPassed);
    const settled = sumOf(passed, "points");
    const left = sums(tests, "clients", "charged", "estimated");
    const off = sums(tests, "p50", "p95", "bias", "reportedWorst");
    const percent = points === 0 ? 0 : (100 * settled) / points;
    return {
      words:
        `${percent.toFixed(percent === 100 ? 0 : 2)} % of ${count(points)} byte offsets; ` +
        `${left.charged} of ${left.clients} paced streams charged with DRAIN_S 1: ${left.charged - left.estimated} by usage, off by ${off.reportedWorst.toFixed(1)} %, ` +
        `${left.estimated} by estimate, off by p50 ${off.p50.toFixed(1)} %, p95 ${off.p95.toFixed(1)} % (${off.bias > 0 ? "over" : "under"} in the median)`,
      isMet: points > 0 && settled === points && left.clients > 0 && left.charged === left.clients,
      values: { points, settled, ...left, ...off },
    };
  },
};

export const FORGED = summed(9, ["forged", "operations"], ({ forged, operations }) => ({
  words: `${operations} for ${count(forged)} keys`,
  isMet: operations === 0 && forged > 0,
}));

export const FUZZING: TestedRow = {
  row: 12,
  read: (tests) => {
    const values = {
      ...sums(tests, "inputs", "faults"),
      // counted per file: every test of it says how many there were so far
      answers: sumOfMost(tests, "answers"),
      internal: sumOfMost(tests, "internal"),
    };
    const { inputs, faults, answers, internal } = values;
    return {
      words: `${count(inputs)} inputs, ${faults} faults; ${internal} of ${count(answers)} answers of the whole application were a 500`,
      isMet: faults + internal === 0 && inputs > 0 && answers > 0,
      values,
    };
  },
};

export const KILLS = summed(
  13,
  ["kills", "answered", "lost", "stranded"],
  ({ kills, answered, lost, stranded }) => ({
    words: `${lost} of ${count(answered)}, ${kills} kills in mid-load in both regions; ${stranded} streams that died with the peer were released`,
    isMet: lost === 0 && kills > 0 && answered > 0,
  }),
);

export const MATRIX: TestedRow = {
  row: 14,
  read: (tests) => {
    // cells of the fault matrix; one that says n/a is none
    const named = tests.filter(({ title }) => title.includes(" x "));
    const cells = named.filter(({ title }) => !title.includes(": n/a"));
    const holding = cells.filter((one) => one.hasPassed).length;
    const values = { cells: cells.length, holding, notApplicable: named.length - cells.length };
    return {
      words: `${holding} of ${cells.length} (${values.notApplicable} not applicable)`,
      isMet: cells.length > 0 && holding === cells.length,
      values,
    };
  },
};

export const FROM_TESTS: readonly Producer[] = [
  fromTests("races for the last credits", 15, [RACES], [long("last-credits")]),
  fromTests(
    "settlement over a line that doubles and reorders",
    12,
    [SETTLEMENTS],
    [long("settlement")],
  ),
  fromTests("a mixed load on both regions", 20, [LEDGERS, SHORTFALLS], [long("mixed-load")]),
  fromTests(
    "limits of a minute",
    80,
    [LIMIT],
    [{ files: ["test/keys/registers.pure.test.ts"] }, long("limit-of-a-minute", "a key pressed")],
  ),
  fromTests(
    "a wallet that is evicted",
    8,
    [EVICTIONS],
    [long("limit-of-a-minute", "a key whose wallet is evicted")],
  ),
  fromTests(
    "revocation under load and with the link cut",
    20,
    [REVOCATIONS],
    [long("revocation-under-load"), long("global-revocation", "503 at the peer, never 200")],
  ),
  fromTests(
    "clients that leave",
    100,
    [LEAVING],
    [{ files: ["test/node/disconnect.test.ts"], inFull: true }, long("left-streams")],
  ),
  fromTests("forged keys", 15, [FORGED], [{ files: ["test/contract/forged-keys.test.ts"] }]),
  // all but the test of the fuzzer itself, which has faults to find
  fromTests(
    "fuzzing",
    20,
    [FUZZING],
    [{ files: ["test/fuzz"], parameters: ["--exclude", "test/fuzz/faults-of.pure.test.ts"] }],
  ),
  fromTests("regions killed in mid-load", 90, [KILLS], [long("restart"), long("settlement-kills")]),
  fromTests(
    "the fault matrix",
    35,
    [MATRIX],
    [long("fault-matrix"), { files: ["test/wallet/fault-matrix-"] }],
  ),
];

/** A test of `npm run test:long`, or those of its tests that are called so. */
function long(name: string, title?: string): Files {
  const parameters = title === undefined ? [] : ["--testNamePattern", title];
  return { files: [`test/node/${name}.long.test.ts`], inFull: true, parameters };
}

/** Rows that the same tests measure. */
function fromTests(
  what: string,
  seconds: number,
  rows: readonly TestedRow[],
  runs: readonly Files[],
): Producer {
  return {
    rows: rows.map(({ row }) => row),
    what,
    seconds,
    produce: async ({ scratch }) => {
      const tests: RanTest[] = [];
      for (const { files, inFull = false, ...options } of runs) {
        const variables = { TURNPIKE_LONG: inFull ? "1" : "" };
        tests.push(...(await runTests(scratch, files, { ...options, variables })));
      }
      return rows.map((row) => testedFinding(row, tests));
    },
  };
}

function sumOfMost(tests: readonly RanTest[], name: string): number {
  const most = new Map<string, number>();
  for (const { file, measured } of tests) {
    most.set(file, Math.max(most.get(file) ?? 0, measured[name] ?? 0));
  }
  return [...most.values()].reduce((sum, one) => sum + one, 0);
}
