import { now } from "../../../shared/clock.ts";
import { conflict, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { logAlert } from "../../../shared/log.ts";
import { readWalletSnapshotHead } from "../snapshot.store.ts";
import type { SnapshotHead } from "../snapshot.store.ts";
import type {
  ReconciliationDifference,
  ReconcileOptions,
  ReconcileRun,
  ReconcileState,
  Reconciliation,
} from "../../../shared/contracts/reconciliation.ts";
import type { WalletHealth } from "../../../shared/contracts/wallet.ts";
import { refuseStorageUnavailable } from "./decisions.do.ts";
import type { Decisions } from "./decisions.do.ts";
import { freeBalance } from "../rules/open-holds.ts";
import { selectRefundedTotal } from "../tables/payment-rows.do.ts";
import { readBalance } from "./reads.do.ts";
import { isUnpublished, loadWalletMemory } from "./memory.do.ts";
import type { Tx, WalletMemory } from "./memory.do.ts";

/** Maximum rows per transaction (about 10 ms). */
const SLICE_ROWS = 10_000;
/** Pause in ms between transactions, so that other calls can run. */
const SLICE_PAUSE_MS = 20;
const RESTARTS_MAX = 8;

/** Compares the totals of all rows with memory and D1. */
export async function reconcileWallet(
  decisions: Decisions,
  db: D1Database,
  { from: started, withinMs = Infinity, rowsMax = SLICE_ROWS }: ReconcileOptions,
): Promise<Result<Reconciliation>> {
  const untilMs = now({}) + withinMs;
  for (let from = started ?? { tries: 0, run: null }; ;) {
    const tx = decisions.tryOpen();
    if (tx === null) return refuseStorageUnavailable();
    const { orgId } = tx.memory.row;
    const head =
      from.run === null ? await readWalletSnapshotHead(db, orgId).catch(() => null) : null;
    const slice = decisions.decide((later) =>
      reconcileSlice(later, from, { snapshot: head, rowsMax }),
    );
    if (!slice.ok || slice.value.next === undefined || now({}) >= untilMs) return slice;
    from = slice.value.next;
    await scheduler.wait(SLICE_PAUSE_MS);
  }
}

/**
 * Computes all totals from the rows that existed at the start. Restarts if rows already read have
 * changed. Returns `conflict` after too many restarts.
 */
function reconcileSlice(
  tx: Tx,
  { tries, run: before }: ReconcileState,
  { snapshot, rowsMax }: { readonly snapshot: SnapshotHead | null; readonly rowsMax: number },
): Result<Reconciliation> {
  const { memory } = tx;
  if (before !== null && !isRunCurrent(memory, before)) {
    const message = "The wallet is removing old rows. Please retry in a few minutes.";
    if (tries >= RESTARTS_MAX) return conflict(message);
    return success({ ...emptyReconciliation(tx, null), next: { tries: tries + 1, run: null } });
  }
  let run = before ?? startRun(tx, snapshot);
  for (let left = rowsMax; left > 0 && run.table !== null;) {
    const page = READERS[run.table](tx, run, left);
    left -= page.rows;
    run = advanceRun(run, run.table, page);
  }
  if (run.table !== null) return success({ ...run.answer, next: { tries, run } });
  const differences = [...compareRun(run), ...run.answer.differences].filter(isDifferent);
  for (const one of differences) {
    logAlert("reconciliation_difference", { org_id: memory.row.orgId, ...one });
  }
  return success({ ...run.answer, differences });
}

/**
 * The next table, by the table just read. The table that changes most comes first, so that restarts
 * cost little.
 */
const NEXT_TABLE = { totals: "entries", entries: "requests", requests: null } as const;

function advanceRun(run: ReconcileRun, read: keyof typeof NEXT_TABLE, page: Page): ReconcileRun {
  const answer = { ...run.answer, rowsRead: run.answer.rowsRead + page.rows };
  const table = page.after === null ? NEXT_TABLE[read] : read;
  return { ...run, ...page.found, answer, table, after: page.after ?? [] };
}

/**
 * Reports whether the rows read so far are unchanged. Rows of `totals` also change with each
 * checkpoint.
 */
function isRunCurrent(memory: WalletMemory, { mark, revision, table }: ReconcileRun): boolean {
  return memory.ledgerMark === mark && (table !== "totals" || memory.row.revision === revision);
}

function isDifferent({ expected, found }: ReconciliationDifference): boolean {
  return expected !== found;
}

function startRun(tx: Tx, snapshot: SnapshotHead | null): ReconcileRun {
  const { sql, memory } = tx;
  const { floorId } = memory;
  const open = sql
    .exec<{ holds: number; held: number }>(
      `SELECT count(*) AS holds, coalesce(sum(granted), 0) AS held FROM requests
      WHERE id >= ? AND state = 'held'`,
      floorId,
    )
    .one();
  const found = [
    ...compareWithTables(memory, loadWalletMemory(sql)),
    ...compareRefunds(tx),
    ...compareWithSnapshot(memory, snapshot),
  ];
  return {
    mark: memory.ledgerMark,
    revision: memory.row.revision,
    floor: floorId,
    table: "totals",
    after: [],
    usage: Object.fromEntries(
      DIMENSIONS.map((dimension) => [dimension, sumUsageCost(memory, dimension)]),
    ),
    ...open,
    newest: 0,
    rolled: 0,
    later: 0,
    entered: 0,
    used: 0,
    charged: 0,
    answer: { ...emptyReconciliation(tx, snapshot), differences: found.filter(isDifferent) },
  };
}

function emptyReconciliation(tx: Tx, snapshot: SnapshotHead | null): Omit<Reconciliation, "next"> {
  const { seq } = tx.memory.ledger;
  return { ...readBalance(tx), seq, book: snapshot, differences: [], rowsRead: 0 };
}

type Page = {
  readonly rows: number;
  readonly after: readonly string[] | null;
  readonly found: Partial<ReconcileRun>;
};

const READERS = { totals: readTotals, entries: readEntries, requests: readRequests };
const DIMENSIONS = ["model", "key", "user"] as const;

function readTotals({ sql }: Tx, run: ReconcileRun, rowsMax: number): Page {
  const from = run.after.length === 0 ? ["day", "~", ""] : run.after;
  const [last] = sql
    .exec<{ dimension: string; day: string; name: string }>(
      `SELECT dimension, day, name FROM totals WHERE (dimension, day, name) > (?, ?, ?)
      ORDER BY dimension, day, name LIMIT 1 OFFSET ?`,
      ...from,
      rowsMax - 1,
    )
    .toArray();
  const after = last === undefined ? null : [last.dimension, last.day, last.name];
  const sums = sql
    .exec<{ dimension: string; rows: number; cost: number }>(
      `SELECT dimension, count(*) AS rows, sum(cost) AS cost FROM totals
      WHERE (dimension, day, name) > (?, ?, ?) AND (dimension, day, name) <= (?, ?, ?)
      GROUP BY dimension`,
      ...from,
      ...(after ?? ["~", "", ""]),
    )
    .toArray();
  const usage = { ...run.usage };
  for (const { dimension, cost } of sums) usage[dimension] = (usage[dimension] ?? 0) + cost;
  return { rows: sums.reduce((sum, { rows }) => sum + rows, 0), after, found: { usage } };
}

const IN_SCOPE_SQL = "(seq <= ?3 OR seq > ?4)";

function readEntries({ sql, memory }: Tx, run: ReconcileRun, rowsMax: number): Page {
  const page = sql
    .exec<PageSums & { rolled: number; used: number }>(
      `WITH page AS MATERIALIZED
        (SELECT seq, kind, amount FROM entries WHERE seq > ?1 ORDER BY seq LIMIT ?2),
        scope AS (SELECT * FROM page WHERE ${IN_SCOPE_SQL}),
        rollup AS (SELECT coalesce(max(seq), ?5) AS rolled FROM page WHERE kind = 'rollup')
      SELECT (SELECT count(*) FROM page) AS rows, (SELECT max(seq) FROM page) AS last, rolled,
        max(seq) AS newest, sum(seq > rolled) AS later, sum(amount) AS amount,
        sum(iif(kind IN ('usage', 'rollup'), amount, 0)) AS used
      FROM rollup LEFT JOIN scope`,
      Number(run.after[0] ?? 0),
      rowsMax,
      run.answer.seq,
      memory.ledger.seq,
      run.rolled,
    )
    .one();
  const { rolled, used } = page;
  const before = rolled === run.rolled ? run.later : 0;
  return {
    ...pagePosition(page, rowsMax),
    found: {
      rolled,
      newest: Math.max(run.newest, page.newest ?? 0),
      later: before + (page.later ?? 0),
      entered: run.entered + (page.amount ?? 0),
      used: run.used + (used ?? 0),
    },
  };
}

function readRequests({ sql, memory }: Tx, run: ReconcileRun, rowsMax: number): Page {
  const page = sql
    .exec<PageSums & { holds: number; held: number | null }>(
      `WITH page AS (SELECT id, state, granted, charged, late,
          iif(${IN_SCOPE_SQL}, seq, NULL) AS seq
        FROM requests WHERE id > ?1 ORDER BY id LIMIT ?2)
      SELECT count(*) AS rows, max(id) AS last, max(seq) AS newest,
        count(iif(seq > ?5, 1, NULL)) AS later,
        sum(iif(seq IS NOT NULL AND state = 'settled' AND late = 0, charged, 0)) AS amount,
        count(iif(state = 'held' AND id < ?6, 1, NULL)) AS holds,
        sum(iif(state = 'held' AND id < ?6, granted, 0)) AS held FROM page`,
      run.after[0] ?? "",
      rowsMax,
      run.answer.seq,
      memory.ledger.seq,
      run.rolled,
      run.floor,
    )
    .one();
  return {
    ...pagePosition(page, rowsMax),
    found: {
      newest: Math.max(run.newest, page.newest ?? 0),
      later: run.later + (page.later ?? 0),
      charged: run.charged + (page.amount ?? 0),
      holds: run.holds + page.holds,
      held: run.held + (page.held ?? 0),
    },
  };
}

type PageSums = {
  rows: number;
  last: string | number | null;
  newest: number | null;
  later: number | null;
  amount: number | null;
};

function pagePosition({ rows, last }: PageSums, rowsMax: number): Pick<Page, "rows" | "after"> {
  return { rows, after: rows < rowsMax || last === null ? null : [String(last)] };
}

function compareRun(run: ReconcileRun): ReconciliationDifference[] {
  const { creditsMicro, heldMicro, openHolds, seq } = run.answer;
  // The charges must equal the usage by model, by key and by end user.
  const paid = run.charged - run.used;
  return [
    { what: "ledger sum", expected: run.entered - run.charged, found: creditsMicro },
    { what: "ledger seq", expected: run.newest, found: seq },
    { what: "ledger rows missing", expected: 0, found: seq - run.rolled - run.later },
    { what: "open holds", expected: run.holds, found: openHolds },
    { what: "held", expected: run.held, found: heldMicro },
    ...DIMENSIONS.map((dimension) => ({
      what: `usage by ${dimension}`,
      expected: paid,
      found: run.usage[dimension] ?? 0,
    })),
  ];
}

function compareWithTables(memory: WalletMemory, fresh: WalletMemory): ReconciliationDifference[] {
  return [
    { what: "balance", expected: fresh.ledger.balance, found: memory.ledger.balance },
    { what: "owed", expected: fresh.debts.owed, found: memory.debts.owed },
    { what: "held since checkpoint", expected: fresh.ledger.held, found: memory.ledger.held },
    { what: "end users", expected: fresh.endUsers, found: memory.endUsers },
    { what: "end-user spend", expected: sumUnsavedCounts(fresh), found: sumUnsavedCounts(memory) },
    { what: "usage", expected: sumUsageCost(fresh), found: sumUsageCost(memory) },
  ];
}

/**
 * Checks that each refunded amount is owed, taken or forgiven, and that an organization with debts
 * has no free balance.
 */
function compareRefunds({ sql, memory: { debts, ledger } }: Tx): ReconciliationDifference[] {
  const { owed, taken, forgiven } = debts;
  return [
    { what: "money back", expected: selectRefundedTotal(sql), found: owed + taken + forgiven },
    {
      what: "free beside what is owed",
      expected: 0,
      found: owed > 0 ? freeBalance(ledger) : 0,
    },
  ];
}

function compareWithSnapshot(
  memory: WalletMemory,
  snapshot: SnapshotHead | null,
): ReconciliationDifference[] {
  if (snapshot === null) return [];
  const { row, ledger } = memory;
  const differences: ReconciliationDifference[] = [
    { what: "book epoch", expected: row.epoch, found: snapshot.epoch },
  ];
  if (snapshot.seq > row.revision) {
    differences.push({ what: "book seq", expected: row.revision, found: snapshot.seq });
  }
  if (!memory.hasChanges && memory.routine === 0) {
    differences.push({
      what: "book balance",
      expected: ledger.balance,
      found: snapshot.creditsMicro,
    });
  }
  return differences;
}

function sumUnsavedCounts({ budgets }: WalletMemory): number {
  const tallies = [...budgets.unsaved.values()].flatMap(({ tally }) => tally);
  return tallies.reduce((sum, [, amount]) => sum + amount, 0);
}

function sumUsageCost(memory: WalletMemory, dimension?: string): number {
  return [...memory.usage.values()]
    .filter((total) => dimension === undefined || total.dimension === dimension)
    .reduce((sum, total) => sum + total.costMicro, 0);
}

export function readWalletHealth({ memory, sql, clockMs }: Tx): WalletHealth {
  const { ledger, row } = memory;
  let oldest = Infinity;
  for (const hold of ledger.holds.values()) oldest = Math.min(oldest, hold.admittedAt);
  return {
    openHolds: ledger.holds.size,
    oldestHoldMs: oldest === Infinity ? null : Math.max(0, clockMs - oldest),
    isUnpublished: isUnpublished(memory),
    isInConflict: row.conflict !== null,
    bytes: sql.databaseSize,
  };
}
