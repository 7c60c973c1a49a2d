import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ROOT, runTests } from "./programs.ts";
import type { RanTest } from "./programs.ts";
import type { Finding, Producer } from "./table.ts";

/** One guard of the product taken away: a text of a file that stands there once, and what replaces it. */
export type Mutant = {
  readonly guard: string;
  /** From the root. */
  readonly file: string;
  readonly text: string;
  readonly other: string;
};
/** The test that must find each of them: its file, and the one test of it that counts ("" for any). */
export type Suite = {
  readonly test: string;
  readonly title: string;
  readonly mutants: readonly Mutant[];
};

const inFile =
  (file: string) =>
  (guard: string, text: string, other: string): Mutant => ({ guard, file, text, other });
const ledger = inFile("src/wallet/rules/ledger.ts");
const credits = inFile("src/wallet/rules/credit.ts");
const quota = inFile("src/wallet/rules/quota.ts");
const idempotency = inFile("src/wallet/rules/hold-guards.ts");
const rate = inFile("src/lib/rate-window.ts");

const MONEY: readonly Mutant[] = [
  ledger("a grant fits what is free", "purses.push(balancePurse(books, ask, rules));", ""),
  ledger(
    "a grant fits the day's quota",
    '["day", endUser.dailyQuota, left.daily, held.daily],',
    "",
  ),
  ledger(
    "a grant fits the month's quota",
    '["month", endUser.monthlyQuota, left.monthly, held.monthly],',
    "",
  ),
  ledger(
    "a settled request is not settled again",
    "return { charged: known.charged, shortfall: known.shortfall };",
    "return null;",
  ),
  ledger("a voided request is not settled", 'return "voided";', "return null;"),
  ledger(
    "a charge is at most what is held and free",
    "Math.min(cost, held + Math.max(0, free))",
    "Math.min(cost, held + Math.max(0, free) + 1)",
  ),
  ledger(
    "a late charge fits the end user's quotas",
    "Math.min(freeOf(books), left.daily, left.monthly, ofBudget)",
    "Math.min(freeOf(books), ofBudget)",
  ),
  ledger(
    "a late charge has nothing held",
    "rules.charge(cost, micros(0), free)",
    "rules.charge(cost, known.granted ?? micros(0), free)",
  ),
  ledger(
    "what no charge covers is a shortfall",
    "shortfall: micros(Math.max(0, cost - charged)), late: false",
    "shortfall: micros(0), late: false",
  ),
  credits(
    "a correction never takes what is held",
    "amount < 0 && balance < books.held",
    "amount < 0 && balance < 0",
  ),
  ledger(
    "held counts for the day",
    '["day", endUser.dailyQuota, left.daily, held.daily],',
    '["day", endUser.dailyQuota, left.daily, NOTHING.daily],',
  ),
  ledger(
    "held counts for the month",
    '["month", endUser.monthlyQuota, left.monthly, held.monthly],',
    '["month", endUser.monthlyQuota, left.monthly, NOTHING.monthly],',
  ),
  quota("a period that has passed has nothing left", "passed ? 0 : quota - used", "quota - used"),
  quota(
    "an older day does not take the slot",
    "period.day < spend.day\n      ?",
    "period.day === ''\n      ?",
  ),
  quota(
    "a slot counts for its own day",
    "spend.day === period.day ? spend.daily",
    "spend.day !== '' ? spend.daily",
  ),
  ledger("a closed hold is no longer held", "books.held = micros(books.held - hold.granted);", ""),
  ledger(
    "holds of a user count by their day",
    "if (hold.period.day === period.day) daily += hold.granted;",
    "",
  ),
  ledger(
    "a hold ends when its time is up",
    "filter((hold) => hold.expiresAt <= nowMs)",
    "filter((hold) => hold.expiresAt + 60_000 <= nowMs)",
  ),
  idempotency(
    "a charged request keeps its Idempotency-Key for a day",
    "nowMs - holder.admittedAt >= IDEMPOTENCY_MS",
    "nowMs - holder.admittedAt >= IDEMPOTENCY_MS / 24",
  ),
];

const LIMIT: readonly Mutant[] = [
  rate(
    "not one more than the limit",
    "const inTheWay = this.#nthLast(limit);",
    "const inTheWay = this.#nthLast(limit + 1);",
  ),
  rate("60 s and no less", "at - inTheWay < WINDOW_MS", "at - inTheWay < WINDOW_MS - 1"),
  rate("60 s and no more", "at - inTheWay < WINDOW_MS", "at - inTheWay <= WINDOW_MS"),
  rate("a full ring is restored in its order", "Math.max(0, step);", "0;"),
  rate(
    "time never runs backwards",
    "const at = Math.max(clockMs, this.#nthLast(1) ?? clockMs);",
    "const at = clockMs;",
  ),
];

export const SUITES: readonly Suite[] = [
  {
    test: "test/wallet/ledger-model.pure.test.ts",
    title: "never overspend, never charge twice",
    mutants: MONEY,
  },
  { test: "test/keys/rate-window.pure.test.ts", title: "", mutants: LIMIT },
];

const MODEL = "test/wallet/ledger-model.pure.test.ts";
const WHOLE = "never overspend, never charge twice";
const GUARD = "the model objects when a guard is taken away:";
const CONFIG = `export default { test: { include: ["*/test/**/*.pure.test.ts"], testTimeout: 60_000 } };`;
/** Ten times what they take: a mutant that never ends ends the measurement. */
const TIMEOUT_MS = 300_000;

/** A copy of the tree in which one guard is gone; `intact` is the copy where none is. */
type Copy = { readonly name: string; readonly suite: Suite; readonly mutant: Mutant | null };

/** The source with the mutant in it; throws unless its text stands there exactly once. */
export function mutated(source: string, { file, text, other, guard }: Mutant): string {
  const parts = source.split(text);
  if (parts.length !== 2) {
    throw new Error(`"${guard}": its text stands ${parts.length - 1} times in ${file}, not once`);
  }
  return parts.join(other);
}

/** Row 1: the model's own runs, its rules without a guard, and the source without one. */
export function modelFinding(
  model: readonly RanTest[],
  copies: { readonly all: number; readonly survivors: readonly string[] },
): Finding {
  const whole = model.find(({ title }) => title.startsWith(WHOLE));
  const runs = Number(/ in (\d+) runs/.exec(whole?.title ?? "")?.[1] ?? 0);
  const rules = model.filter(({ fullName }) => fullName.startsWith(GUARD));
  const found = rules.filter((one) => one.hasPassed).length;
  const values = {
    runs: whole?.hasPassed === true ? runs : 0,
    rules: rules.length,
    rulesFound: found,
    mutants: copies.all,
    mutantsFound: copies.all - copies.survivors.length,
  };
  const survived = copies.survivors.length === 0 ? "" : `; missed: ${copies.survivors.join(", ")}`;
  return {
    row: 1,
    measured:
      `${values.runs.toLocaleString("en-US")} runs; ${found} of ${rules.length} rules replaced, ` +
      `${values.mutantsFound} of ${values.mutants} lines of source changed${survived}`,
    isMet:
      values.runs > 0 &&
      rules.length > 0 &&
      found === rules.length &&
      copies.all > 0 &&
      copies.survivors.length === 0,
    values,
  };
}

/** Which mutants their suite did not find. Throws when a suite fails without any, or did not run. */
export function survivorsOf(copies: readonly Copy[], tests: readonly RanTest[]): readonly string[] {
  const hasFailed = ({ name, suite }: Copy): boolean => {
    const its = tests.filter(
      ({ file, title }) => file.includes(`/${name}/`) && title.startsWith(suite.title),
    );
    if (its.length === 0) throw new Error(`${suite.test} did not run in ${name}`); // no finding
    return its.some((one) => !one.hasPassed);
  };
  for (const copy of copies) {
    if (copy.mutant === null && hasFailed(copy)) {
      throw new Error(`${copy.suite.test} fails as it is`);
    }
  }
  const missed = copies.filter((copy) => copy.mutant !== null && !hasFailed(copy));
  return missed.map(({ mutant }) => mutant?.guard ?? "");
}

export const MODEL_AND_MUTANTS: Producer = {
  rows: [1],
  what: "the ledger's model, and the same without one guard each",
  seconds: 60,
  produce: async ({ scratch, say }) => {
    const model = await runTests(scratch, [MODEL]);
    const copies = SUITES.flatMap(copiesOf);
    const root = path.join(scratch, "mutants");
    mkdirSync(root);
    symlinkSync(path.join(ROOT, "node_modules"), path.join(root, "node_modules"));
    writeFileSync(path.join(root, "vitest.config.mjs"), CONFIG);
    writeFileSync(path.join(root, "package.json"), `{"type":"module"}`);
    for (const copy of copies) copyTree(path.join(root, copy.name), copy);
    const all = copies.filter(({ mutant }) => mutant !== null).length;
    say(`${all} changed copies of the source`);
    // As long as test:long: a late settle into a day that has passed takes some 30,000 runs to find.
    const variables = { TURNPIKE_LONG: "1" };
    const options = { directory: root, timeoutMs: TIMEOUT_MS, variables };
    const tests = await runTests(scratch, [], options);
    return [modelFinding(model, { all, survivors: survivorsOf(copies, tests) })];
  },
};

function copiesOf(suite: Suite, at: number): Copy[] {
  const copies: Copy[] = [{ name: `intact-${at}`, suite, mutant: null }];
  for (const [i, mutant] of suite.mutants.entries()) {
    copies.push({ name: `mutant-${at}-${i}`, suite, mutant });
  }
  return copies;
}

/** The source and the one test, in a place of their own: the checkout itself is never changed. */
function copyTree(to: string, { suite, mutant }: Copy): void {
  cpSync(path.join(ROOT, "src"), path.join(to, "src"), { recursive: true });
  const folder = path.dirname(suite.test);
  const isNeeded = (from: string): boolean =>
    !from.endsWith(".test.ts") || from === path.join(ROOT, suite.test);
  cpSync(path.join(ROOT, folder), path.join(to, folder), { recursive: true, filter: isNeeded });
  cpSync(path.join(ROOT, "test/effort.ts"), path.join(to, "test/effort.ts"));
  if (mutant === null) return;
  const file = path.join(to, mutant.file);
  writeFileSync(file, mutated(readFileSync(file, "utf8"), mutant));
}
