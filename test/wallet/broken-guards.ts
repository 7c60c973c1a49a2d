/** A guard to remove: a text that occurs once in a file, and its replacement. */
export type BrokenGuard = {
  readonly guard: string;
  /** From the root. */
  readonly file: string;
  readonly text: string;
  readonly other: string;
  /** Matches the expected failure. */
  readonly breaks: RegExp;
  /** Only the number of runs in `npm run test:long` finds it. */
  readonly isRare?: true;
};

const inFile =
  (file: string) =>
  (
    guard: string,
    text: string,
    other: string,
    breaks = /Property failed|expected|assertion failed/,
  ): BrokenGuard => ({
    guard,
    file,
    text,
    other,
    breaks,
  });
const rare = (one: BrokenGuard): BrokenGuard => ({ ...one, isRare: true });
const ledger = inFile("src/money/wallet/rules/ledger.ts");
const holds = inFile("src/money/wallet/rules/open-holds.ts");
const credit = inFile("src/money/wallet/rules/ledger.ts");
const limits = inFile("src/money/wallet/rules/token-window.ts");
const fields = inFile("src/money/wallet/rules/limits.ts");
const meter = inFile("src/shared/budget-meter.ts");
const hold = inFile("src/money/wallet/rules/hold-guards.ts");
const model = inFile("test/wallet/plain-wallet.ts");
const rate = inFile("src/shared/rate-window.ts");

const CHARGE = "Math.min(cost, held + Math.max(0, free))";
const EACH = ".filter(({ budget }) => budget.unit";
const HELD = "const held = meter.held.get(heldBucket(budget.window, at)) ?? 0;";
const DOLLARS = 'budget.unit === "dollars" && budget.amount !== Infinity';
const TOKENS_LEFT = "const remaining = limit - this.#count(nowMs);";
const NAME_FREED = 'if (holder.state === "voided" || holder.state === "refused")';
const NAME_EXPIRED = "success(holder.body === body ? holder.id : null)";
const RATE_OLDEST =
  "dropOldTimes(log, nowMs);\n  const oldest = log[Math.max(0, log.length - limit)];";

/** Guards whose removal `ledger-model` must find. */
export const MONEY: readonly BrokenGuard[] = [
  ledger(
    "a repeated hold gets the first result",
    'if (known.granted === null && known.state === "voided") return refuse({ kind: "overloaded" });',
    "return null;",
    /a hold opens once|I1|I3|I5|I6|L2/,
  ),
  ledger(
    "a repeated settlement gets the first result",
    'if (state === "settled") return { kind: "settled", charged, shortfall };',
    'if (state === "settled") return null;',
    /I5/,
  ),
  ledger(
    "a voided request is not settled",
    'if (state === "voided") return { kind: "voided" };',
    "",
  ),
  model(
    "a void that arrives before its hold leaves a tombstone",
    "this.rows.set(id, tombstone(id, this.now));",
    "",
    /I6/,
  ),
  ledger(
    "a grant is at most the free credits",
    "input.isQuota === true ? input.limits : [...input.limits, balanceLimit(ledger)];",
    "[...input.limits, { ...balanceLimit(ledger), left: Infinity }];",
  ),
  ledger(
    "a charge is at most the held and free credits",
    CHARGE,
    "cost",
    /I2|I4|K1|S1|holds never exceed/,
  ),
  ledger("a charge is not a micro more", CHARGE, `${CHARGE} + 1`),
  ledger(
    "a late charge has no held credits",
    "const held = open?.granted ?? micros(0);",
    "const held = known.granted ?? micros(0);",
  ),
  ledger(
    "the part of a cost that isn't charged is a shortfall",
    "const shortfall = micros(Math.max(0, cost - charged));",
    "const shortfall = micros(0);",
  ),
  credit(
    "a correction never takes held credits",
    "amount < 0 && balance < ledger.held",
    "amount < 0 && balance < 0",
  ),
  holds(
    "a closed hold releases the held credits",
    "ledger.held = micros(ledger.held - amountFromBalance(hold));",
    "",
  ),
  holds(
    "a hold expires at its deadline",
    "filter((hold) => hold.expiresAt <= nowMs)",
    "filter((hold) => hold.expiresAt + 60_000 <= nowMs)",
  ),
  ledger(
    "a request without a cap leaves half of the free credits",
    "hasCap ? free : Math.floor(free / 2)",
    "free",
    /half of what is free/,
  ),

  fields(
    "a hold is at most the rest of the quotas",
    EACH,
    `.filter(({ scope }) => scope !== "end_user")\n    ${EACH}`,
    /I4|half|S6/,
  ),
  fields(
    "a grant is at most the rest of the daily quota",
    EACH,
    `.filter((one) => !isQuotaLimit(one) || one.budget.window !== "day")\n    ${EACH}`,
  ),
  fields(
    "a grant is at most the rest of the monthly quota",
    EACH,
    `.filter((one) => !isQuotaLimit(one) || one.budget.window !== "month")\n    ${EACH}`,
  ),
  fields(
    "held credits count against the daily quota",
    HELD,
    HELD.replace("held =", 'held = isQuotaLimit(meter) && budget.window === "day" ? 0 :'),
  ),
  fields(
    "held credits count against the monthly quota",
    HELD,
    HELD.replace("held =", 'held = isQuotaLimit(meter) && budget.window === "month" ? 0 :'),
  ),
  fields(
    "an end user's hold counts on the day of the hold",
    "return isCalendar ? bucketAt(window, { period, nowMs: 0 }) : 0;",
    "return 0;",
  ),
  fields(
    "a late charge is at most the rest of the end user's quotas",
    "(!isLate && isQuotaLimit(meter))",
    "isQuotaLimit(meter)",
  ),
  meter(
    "spend counts in the period of the request",
    "return Math.floor(startOf(window, period) / DAY_MS);",
    "return 1;",
    /period/,
  ),
  meter(
    "a sum of a day counts only on that day",
    "(isRolling ? one > bucket - ROLLING_BUCKETS : one === bucket) ?",
    "(isRolling ? one > bucket - ROLLING_BUCKETS : true) ?",
  ),

  hold(
    "a charged request keeps its Idempotency-Key",
    NAME_FREED,
    'if (["voided", "refused", "settled"].includes(holder.state ?? ""))',
    /charged once a day/,
  ),
  hold(
    "a charged request keeps its Idempotency-Key for a day",
    "nowMs - holder.admittedAt >= IDEMPOTENCY_RETENTION_MS",
    "nowMs - holder.admittedAt >= IDEMPOTENCY_RETENTION_MS / 24",
  ),
  hold(
    "two requests with one Idempotency-Key don't run concurrently",
    NAME_FREED,
    'if (["voided", "refused", "held"].includes(holder.state ?? ""))',
    /charged once a day/,
  ),
  hold(
    "an expired request is voided when another request uses the Idempotency-Key",
    NAME_EXPIRED,
    "success(null)",
    /charged once a day/,
  ),
  hold(
    "an expired request isn't voided by a request with another body and the Idempotency-Key",
    NAME_EXPIRED,
    "success(holder.id)",
    /another body voids nothing/,
  ),
  hold(
    "a voided request frees its Idempotency-Key",
    NAME_FREED,
    'if (holder.state === "refused")',
    /a freed key works again/,
  ),

  fields(
    "a hold is at most the rest of the key's budget",
    DOLLARS,
    `${DOLLARS} && budget.window === "total"`,
    /K1|S1|half/,
  ),
  meter(
    "a key's spend counts only in the budget of the spend's period",
    "(isRolling ? one > bucket - ROLLING_BUCKETS : one === bucket) ?",
    "(isRolling ? one > bucket - ROLLING_BUCKETS : false) ?",
    /K1|K3|S1|half/,
  ),
  fields(
    "open holds count against the key's budget",
    "const held = meter.held.get(heldBucket(budget.window, at)) ?? 0;",
    "const held = 0;",
    /K1|S1|half/,
  ),
  meter(
    "a key's spend belongs to its day, week and month",
    "isRolling ? one > newest - ROLLING_BUCKETS : one === bucket;",
    "isRolling ? one > newest - ROLLING_BUCKETS : false;",
    /K1|K3|S1|half/,
  ),
  rare(
    meter(
      "a charge for a past day counts only on that day",
      "if (!isRolling && newest > bucket) return tally;",
      "if (!isRolling && newest > bucket) return tally.map(([one, sum]) => [one, sum + amount]);",
      /K1|K3|S1|half/,
    ),
  ),
  rare(
    fields(
      "a key's budget for a past period has no rest",
      "isOver ? 0 : meterAmountsAt(meter, at).free",
      "amountsOf(meter, at).free",
      /K1|S1/,
    ),
  ),
  limits(
    "tokens are at most the rest of the minute's limit",
    TOKENS_LEFT,
    `${TOKENS_LEFT}\n    if (limit > 0) return { kind: "granted", tokens: ask.most };`,
    /K2/,
  ),
  limits(
    "the actual tokens replace the reserved tokens",
    "if (counted !== undefined) counted.tokens = tokens;",
    "",
    /K2/,
  ),
  limits(
    "tokens count for the whole minute",
    TOKENS_LEFT,
    "const remaining = limit - this.#count(nowMs + 14_000);",
    /K2/,
  ),

  fields(
    "a session's budget limits the session",
    DOLLARS,
    'budget.unit === "tokens"',
    /S1|half|least and most/,
  ),
  fields(
    "a session's request also counts in the key's budget",
    EACH,
    `.filter((one) => one.scope !== "key" || !meters.some(({ scope }) => scope === "session"))\n    ${EACH}`,
    /K1|half|least and most|S6/,
  ),
  fields(
    "a charge above the hold is at most the rest of the session's budget",
    "least = Math.min(least, isOver ? 0 : meterAmountsAt(meter, at).free);",
    "",
    /K1|S1/,
  ),
  fields(
    "a session's spend counts in the session's budget",
    "const counted = { ...meter, tally: addToBucket(budget.window, tally, { at, amount }) };",
    "const counted = meter;",
    /K3|S1|half/,
  ),
  meter("a session's budget is for good", 'if (window === "total") return 0;', "", /K3|S1|half|S6/),
  fields(
    "a session's open holds count against the session's budget",
    "const sum = (held.get(bucket) ?? 0) + sign * amounts[budget.unit];",
    "const sum = 0;",
    /S1|half/,
  ),
  hold("an ended session is rejected", " || here.endedAt !== null;", ";", /S3/),
  hold(
    "an expired session is rejected",
    "if (here.nowMs < expiresAt) return null;",
    "return null;",
    /S3/,
  ),
  hold(
    "a session's requests per minute are limited",
    "remaining: Math.max(0, limit - log.length)",
    "remaining: limit",
    /S2/,
  ),
  hold(
    "a session's rate limit counts 60 s, not less",
    RATE_OLDEST,
    `if (log.filter((at) => at > nowMs - 46_000).length < limit) return { limit, remaining: 1, resetMs: 1 };\n  ${RATE_OLDEST}`,
    /S2/,
  ),
  hold(
    "a session's rate limit counts 60 s, not more",
    RATE_OLDEST,
    "const oldest = log[Math.max(0, log.length - limit)];",
    /S5/,
  ),
];

/** Guards whose removal the tests of requests per minute must find. */
export const RATE: readonly BrokenGuard[] = [
  rate(
    "requests never exceed the rate limit",
    "const blockingTime = this.#nthLast(limit);",
    "const blockingTime = this.#nthLast(limit + 1);",
  ),
  rate(
    "the rate limit counts 60 s, not less",
    "at - blockingTime < RATE_WINDOW_MS",
    "at - blockingTime < RATE_WINDOW_MS - 1",
  ),
  rate(
    "the rate limit counts 60 s, not more",
    "at - blockingTime < RATE_WINDOW_MS",
    "at - blockingTime <= RATE_WINDOW_MS",
  ),
  rate("a full ring buffer is restored in order", "Math.max(0, step);", "0;"),
  rate(
    "time never decreases",
    "const at = Math.max(clockMs, this.#nthLast(1) ?? clockMs);",
    "const at = clockMs;",
  ),
];
