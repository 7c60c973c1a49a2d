import { logAlert } from "../../lib/log.ts";
import { micros } from "../../lib/money.ts";
import type { BookHead } from "../book.store.ts";
import type { Difference, Reconciliation, Vitals } from "../wallet-contract.ts";
import { loadMemory, selectOpenHolds } from "./memory.do.ts";
import type { Desk, Memory } from "./memory.do.ts";

/** Recomputes every total from the rows themselves and says where memory or book differ. */
export function reconcile(desk: Desk, book: BookHead | null): Reconciliation {
  const { memory } = desk;
  const { books } = memory;
  const differences = [
    ...fromRows(desk),
    ...fromUsage(desk),
    ...fromCheckpoint(memory, loadMemory(desk.sql)),
    ...fromBook(memory, book),
  ].filter((one) => one.expected !== one.found);
  for (const one of differences) {
    logAlert("reconciliation_difference", { org_id: memory.row.orgId, ...one });
  }
  return {
    creditsMicro: books.balance,
    heldMicro: books.held,
    openHolds: books.holds.size,
    seq: books.seq,
    book,
    differences,
  };
}

function fromRows(desk: Desk): Difference[] {
  const { sql, memory } = desk;
  const { books } = memory;
  const ledger = sql
    .exec<{ amount: number | null; newest: number | null }>(
      `SELECT sum(amount) AS amount, max(seq) AS newest FROM (
        SELECT seq, iif(state = 'settled' AND late = 0, -charged, 0) AS amount
        FROM requests WHERE seq IS NOT NULL UNION ALL SELECT seq, amount FROM entries)`,
    )
    .one();
  // Rows older than a rollup are partly gone; every later one must be there, once.
  const gaps = sql
    .exec<{ missing: number }>(
      `SELECT ?1 - rolled - (SELECT count(*) FROM requests WHERE seq > rolled)
        - (SELECT count(*) FROM entries WHERE seq > rolled) AS missing
      FROM (SELECT coalesce(max(seq), 0) AS rolled FROM entries WHERE kind = 'rollup')`,
      books.seq,
    )
    .one();
  const open = selectOpenHolds(sql, "");
  return [
    { what: "ledger sum", expected: ledger.amount ?? 0, found: books.balance },
    { what: "ledger seq", expected: ledger.newest ?? 0, found: books.seq },
    { what: "ledger rows missing", expected: 0, found: gaps.missing },
    { what: "open holds", expected: open.length, found: books.holds.size },
    {
      what: "held",
      expected: micros(open.reduce((sum, hold) => sum + hold.granted, 0)),
      found: books.held,
    },
  ];
}

/** What was charged, by the ledger and, written apart from it, by the usage of models, keys and end users. */
function fromUsage({ sql, memory }: Desk): Difference[] {
  const { paid } = sql
    .exec<{ paid: number }>(
      `SELECT (SELECT coalesce(sum(charged), 0) FROM requests WHERE state = 'settled' AND late = 0)
        - (SELECT coalesce(sum(amount), 0) FROM entries WHERE kind IN ('usage', 'rollup')) AS paid`,
    )
    .one();
  return (["model", "key", "user"] as const).map((dimension) => {
    const { cost } = sql
      .exec<{ cost: number }>(
        "SELECT coalesce(sum(cost), 0) AS cost FROM totals WHERE dimension = ?",
        dimension,
      )
      .one();
    const later = [...memory.usage.values()].filter((total) => total.dimension === dimension);
    const found = later.reduce((sum, total) => sum + total.cost, cost);
    return { what: `usage by ${dimension}`, expected: paid, found };
  });
}

function fromCheckpoint(memory: Memory, fresh: Memory): Difference[] {
  return [
    { what: "balance", expected: fresh.books.balance, found: memory.books.balance },
    { what: "held since checkpoint", expected: fresh.books.held, found: memory.books.held },
    { what: "end users", expected: fresh.endUsers, found: memory.endUsers },
    { what: "end-user spend", expected: spendOf(fresh), found: spendOf(memory) },
    { what: "usage", expected: costOf(fresh), found: costOf(memory) },
  ];
}

function fromBook(memory: Memory, book: BookHead | null): Difference[] {
  if (book === null) return [];
  const { row, books } = memory;
  const differences: Difference[] = [
    { what: "book epoch", expected: row.epoch, found: book.epoch },
  ];
  if (book.seq > row.revision) {
    differences.push({ what: "book seq", expected: row.revision, found: book.seq });
  }
  if (!memory.changed) {
    differences.push({ what: "book balance", expected: books.balance, found: book.creditsMicro });
  }
  return differences;
}

function spendOf(memory: Memory): number {
  return [...memory.unsaved.values()].reduce(
    (sum, user) => sum + user.spend.daily + user.spend.monthly,
    0,
  );
}

function costOf(memory: Memory): number {
  return [...memory.usage.values()].reduce((sum, total) => sum + total.cost, 0);
}

/** How this wallet is now, for the region's metrics. */
export function vitalsOf({ memory, sql, clockMs }: Desk): Vitals {
  const { books, row, changed } = memory;
  let oldest = Infinity;
  for (const hold of books.holds.values()) oldest = Math.min(oldest, hold.admittedAt);
  return {
    openHolds: books.holds.size,
    oldestHoldMs: oldest === Infinity ? null : Math.max(0, clockMs - oldest),
    isUnpublished: changed,
    isInConflict: row.conflict !== null,
    bytes: sql.databaseSize,
  };
}
