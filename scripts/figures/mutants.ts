/** One guard of the product taken away: a text of a file that stands there once, and what replaces it. */
export type Mutant = {
  readonly guard: string;
  /** From the root. */
  readonly file: string;
  readonly text: string;
  readonly mutated: string;
};
/** The test that must find each of them: its file, and the one test of it that counts ("" for any). */
export type Suite = {
  readonly test: string;
  readonly title: string;
  readonly mutants: readonly Mutant[];
};

const inFile =
  (file: string) =>
  (guard: string, text: string, mutated: string): Mutant => ({
    guard,
    file,
    text,
    mutated,
  });
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
