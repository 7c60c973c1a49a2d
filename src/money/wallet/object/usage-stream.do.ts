import { deriveEventId } from "../../../shared/event.ts";
import { micros } from "../../../shared/money.ts";
import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import type {
  UsageStreamPosition,
  UsageStreamRow,
  UsageStreamPage,
  StreamQuery,
  StreamStart,
} from "../../../shared/contracts/usage-stream.ts";
import type { LedgerRow } from "../../../shared/contracts/wallet.ts";
import type { Tx } from "./memory.do.ts";
import { selectSettledGenerations, readLedger, readNewestLedgerRows } from "./reads.do.ts";

/** Maximum rows per page (read in about 5 ms). */
const ROWS_MAX = 500;
const LEDGER_START = { seq: 0, balanceMicro: micros(0) };

/** Returns the next charged requests for usage webhooks. */
export function readUsageStream(
  tx: Tx,
  { from, limit, resumeMs }: StreamQuery,
): Result<UsageStreamPage> {
  const start = resolveCursor(tx, from, resumeMs);
  const rows: UsageStreamRow[] = [];
  let at = start;
  for (const row of readLedger(tx, start.seq, ROWS_MAX).rows) {
    if (rows.length >= limit) break;
    rows.push(...streamRows(tx, row, at));
    at = { madeAt: start.madeAt, seq: row.seq, balanceMicro: row.balanceMicro };
  }
  const ids = rows.flatMap(({ kind, id }) => (kind === "usage" ? [id] : []));
  const requests = selectSettledGenerations(tx.sql, ids);
  return success({
    from: start,
    rows: rows.map((row) => Object.assign(row, { request: requests.get(row.id) ?? null })),
    next: at,
  });
}

function resolveCursor(
  tx: Tx,
  asked: StreamStart,
  resumeMs: number | undefined,
): UsageStreamPosition {
  const { madeAt } = tx.memory.row;
  if ("seq" in asked && asked.madeAt === madeAt) return asked;
  const isResumed = "seq" in asked && resumeMs !== undefined;
  const start = isResumed ? { sinceMs: resumeMs } : asked;
  const after = "afterSeq" in start ? start.afterSeq : 0; // a rebuilt wallet numbers its rows from 1
  const seq = "sinceMs" in start ? findSeqBefore(tx, start.sinceMs) : after;
  const [row = LEDGER_START] = readNewestLedgerRows(tx, seq + 1, 1);
  return { madeAt, seq: row.seq, balanceMicro: row.balanceMicro };
}

function findSeqBefore(tx: Tx, sinceMs: number): number {
  const [mark] = tx.sql
    .exec<{ seq: number }>(
      "SELECT seq FROM checkpoints WHERE clock < ? ORDER BY seq DESC LIMIT 1",
      sinceMs,
    )
    .toArray();
  let seq = mark?.seq ?? 0;
  for (;;) {
    const { rows } = readLedger(tx, seq, ROWS_MAX);
    const later = rows.findIndex(({ createdAt }) => createdAt >= sinceMs);
    seq = (later === -1 ? rows.at(-1) : rows[later - 1])?.seq ?? seq;
    if (later !== -1 || rows.length < ROWS_MAX) return seq;
  }
}

function streamRows({ memory }: Tx, row: LedgerRow, before: UsageStreamPosition): UsageStreamRow[] {
  const { orgId } = memory.row;
  const { madeAt, seq: last, balanceMicro: balance } = before;
  const { seq, kind, amountMicro, balanceMicro, createdAt, generationId, reference } = row;
  const isRolledUp = kind === "rollup";
  const events: UsageStreamRow[] = [];
  const gap = { firstSeq: last + 1, seq: isRolledUp ? seq : seq - 1 };
  if (gap.seq > last) {
    const after = micros(isRolledUp ? balanceMicro : balanceMicro - amountMicro);
    const missing = micros(after - balance);
    const id = deriveEventId("usage.rollup", orgId, madeAt, gap.firstSeq, gap.seq, missing);
    const money = { amountMicro: missing, balanceMicro: after };
    events.push({ id, kind: "rollup", ...gap, ...money, createdAt, reference: null });
  }
  if (isRolledUp || kind === "expire" || kind === "shortfall") return events;
  const id = kind === "usage" ? generationId : null;
  return [
    ...events,
    {
      id: id ?? deriveEventId("usage.credit", orgId, reference),
      kind,
      firstSeq: seq,
      seq,
      amountMicro,
      balanceMicro,
      createdAt,
      reference,
    },
  ];
}
