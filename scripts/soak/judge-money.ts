import type { Verdict } from "./trace.ts";

export type LedgerRow = {
  readonly seq: number;
  readonly kind: string;
  readonly amount_micro: number;
  readonly balance_micro: number;
  readonly generation_id: string | null;
};
export type EndUser = {
  readonly externalId: string;
  /** Micros; null: no cap. */
  readonly dailyQuota: number | null;
  readonly monthlyQuota: number | null;
  readonly dailySpend: number;
  readonly monthlySpend: number;
  /** What the usage report charges it with; null when the day changed during the run. */
  readonly usageCost: number | null;
};
/** An organisation at rest. Money in micros. */
export type Estate = {
  readonly orgId: string;
  /** Of its wallet. */
  readonly balance: number;
  readonly openHolds: number;
  readonly held: number;
  /** All of it, in order. */
  readonly ledger: readonly LedgerRow[];
  /** What was granted, each reference once. */
  readonly credited: number;
  /** Its row in the region's D1; null without one. */
  readonly book: number | null;
  /** What POST reconcile found, in words. */
  readonly differences: readonly string[];
  readonly endUsers: readonly EndUser[];
};
/** An organisation's wallet while the load ran. */
export type Reading = { readonly orgId: string; readonly balance: number; readonly held: number };

const PAID = new Set(["usage", "shortfall", "rollup"]);

/** Sum of the ledger, the running balance of its rows and credits less charges: all are the balance. */
export function judgeLedgers(estates: readonly Estate[]): Verdict {
  const broken: string[] = [];
  let rows = 0;
  let off = 0;
  for (const { orgId, balance, ledger, credited } of estates) {
    rows += ledger.length;
    const sum = total(ledger);
    off += Math.abs(sum - balance);
    if (sum !== balance) broken.push(`${orgId}: ledger ${sum}, balance ${balance} micros`);
    const granted = total(ledger.filter(({ kind }) => kind === "credit"));
    if (granted !== credited) {
      broken.push(`${orgId}: ${credited} micros were granted, the ledger has ${granted}`);
    }
    const charged = 0 - total(ledger.filter(({ kind }) => PAID.has(kind)));
    if (credited - charged !== balance) {
      broken.push(`${orgId}: granted ${credited} - charged ${charged} is not ${balance} micros`);
    }
    broken.push(...brokenRows(orgId, ledger));
  }
  return {
    promise: "sum of the ledger = balance = credits - charges",
    figure: `${off} micros off, ${estates.length} organisations, ${rows} rows`,
    broken,
  };
}

/** Every row follows the one before: in number, and by its amount. */
function brokenRows(orgId: string, ledger: readonly LedgerRow[]): string[] {
  const broken: string[] = [];
  let [seq, balance] = [0, 0];
  for (const row of ledger) {
    if (row.seq <= seq) broken.push(`${orgId}: row ${row.seq} follows row ${seq}`);
    if (balance + row.amount_micro !== row.balance_micro) {
      broken.push(
        `${orgId}: row ${row.seq} says ${row.balance_micro} micros after ${balance} and ${row.amount_micro}`,
      );
    }
    if (row.balance_micro < 0) broken.push(`${orgId}: row ${row.seq} is below 0`);
    ({ seq, balance_micro: balance } = row);
  }
  return broken.slice(0, 3);
}

/** The wallet's own reconciliation finds nothing, and the book's row, read by itself, is the balance. */
export function judgeBooks(estates: readonly Estate[]): Verdict {
  const broken = estates.flatMap(({ orgId, balance, book, differences }) => [
    ...(book === balance ? [] : [`${orgId}: wallet ${balance}, book ${book} micros`]),
    ...differences.map((difference) => `${orgId}: reconciled ${difference}`),
  ]);
  const same = estates.filter(({ balance, book }) => balance === book).length;
  return {
    promise: "home = book, by reconciling and by reading",
    figure: `${same} of ${estates.length} the same`,
    broken,
  };
}

/**
 * Nothing below 0 at any time, nothing held beyond the balance; end users within their quotas, to the micro:
 * no upstream of the load reports more than was held.
 */
export function judgeBounds(readings: readonly Reading[], estates: readonly Estate[]): Verdict {
  const broken = readings
    .filter(({ balance, held }) => balance < 0 || held < 0 || held > balance)
    .map(({ orgId, balance, held }) => `${orgId}: ${held} held of ${balance} micros`);
  const users = estates.flatMap(({ orgId, endUsers }) =>
    endUsers.map((user) => Object.assign({ orgId }, user)),
  );
  for (const { orgId, externalId, usageCost, ...user } of users) {
    const name = `${orgId}, end user ${externalId}`;
    const { dailySpend, dailyQuota, monthlySpend, monthlyQuota } = user;
    if (dailySpend > (dailyQuota ?? Infinity)) {
      broken.push(`${name}: spent ${dailySpend} of ${dailyQuota} micros a day`);
    }
    if (monthlySpend > (monthlyQuota ?? Infinity)) {
      broken.push(`${name}: spent ${monthlySpend} of ${monthlyQuota} micros a month`);
    }
    if (usageCost !== null && usageCost !== dailySpend) {
      broken.push(`${name}: spent ${dailySpend}, charged ${usageCost} micros`);
    }
  }
  const least = Math.min(...readings.map(({ balance }) => balance));
  const full = users.filter((user) => user.dailyQuota !== null && user.dailyQuota > 0);
  const most = Math.max(0, ...full.map((user) => user.dailySpend / (user.dailyQuota ?? 1)));
  return {
    promise: "balances never below 0, end users within their quotas",
    figure: `least balance ${least} micros in ${readings.length} readings; fullest quota ${(most * 100).toFixed(1)} % of ${full.length}`,
    broken,
  };
}

function total(rows: readonly LedgerRow[]): number {
  return rows.reduce((sum, row) => sum + row.amount_micro, 0);
}
