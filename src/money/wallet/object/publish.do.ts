import { logAlert, logWarning } from "../../../shared/log.ts";
import {
  isOwnSnapshot,
  SNAPSHOT_PAGE_ROWS_MAX,
  readWalletSnapshotHead,
  writePublication,
} from "../snapshot.store.ts";
import type { SnapshotPage, SnapshotHead, Publication, PublishResult } from "../snapshot.store.ts";
import { settingsToRow } from "../stored-settings.ts";
import type { KeyUse, UsedKeyRecord } from "../../../shared/key-uses.store.ts";
import { deleteOldAlerts } from "./alerts.do.ts";
import { deletePublishedRemovals, pagesToPublish } from "../tables/published-rows.do.ts";
import type { SettingsWithoutRestrictions } from "../../../shared/contracts/settings.ts";
import { recordKeyUse, changeWalletRow } from "./memory.do.ts";
import type { Tx, WalletMemory } from "./memory.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";

/** Minimum ms between two updates of the organization's last use in D1. */
const USE_INTERVAL_MS = 3_600_000;

/** The result of a publish. `again`: D1 lost rows, so the wallet must publish all rows. */
export type PublishOutcome = {
  readonly outcome: "published" | "again" | "conflict";
  readonly uses: readonly KeyUse[];
  readonly touched: readonly UsedKeyRecord[];
  readonly eventsWait: boolean;
};

const NOTHING_SENT = { uses: [], touched: [], eventsWait: true } as const;

/**
 * Publishes changes to D1, unless D1's snapshot belongs to another wallet. Throws if D1 fails. The
 * next publish then retries. `live` returns the wallet's current state, or null if it is deleted.
 */
export async function publish(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const first = await publishOnce(tx, live);
  const later = live();
  if (first.outcome !== "again" || later === null) return first;
  const second = await publishOnce(later, live);
  const uses = [...first.uses, ...second.uses];
  return { ...second, uses, touched: [...first.touched, ...second.touched] };
}

async function publishOnce(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const { row } = tx.memory;
  if (row.conflict === null) return publishNow(tx, live);
  const head = await readWalletSnapshotHead(tx.env.DB, row.orgId);
  const later = live();
  if (later === null) return { ...NOTHING_SENT, outcome: "published" }; // the wallet was deleted meanwhile
  if (head === null || isOwnSnapshot(later.memory.row, head)) return publishNow(later, live);
  logConflict(later, head);
  return { ...NOTHING_SENT, outcome: "conflict" };
}

async function publishNow(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const { memory } = tx;
  takeCheckpoint(tx);
  const picked = { endUsers: [...memory.unpublishedUserIds], uses: takeKeyUses(memory) };
  const publication = createPublication(tx, picked);
  const { settings } = memory.row;
  const creditsSeq = memory.ledger.seq;
  memory.unpublishedUserIds.clear();
  memory.hasChanges = false;
  memory.routine = 0;
  let published: PublishResult;
  try {
    published = await writePublication(tx.env.DB, publication);
  } catch (error) {
    const later = live()?.memory;
    if (later !== undefined) {
      restoreUnpublished(later, picked.endUsers);
      for (const { hash, usedAt } of picked.uses) recordKeyUse(later, hash, usedAt);
    }
    throw error;
  }
  const reported = { ...published, uses: picked.uses };
  const after = live();
  if (after === null) return { ...reported, outcome: "published" };
  const sent = { head: published.head, picked: picked.endUsers, creditsSeq, settings };
  return { ...reported, outcome: acknowledge(after, publication, sent) };
}

function takeKeyUses({ uses }: WalletMemory): KeyUse[] {
  const picked = [...uses].map(([hash, usedAt]) => ({ hash, usedAt }));
  uses.clear();
  return picked;
}

function restoreUnpublished(memory: WalletMemory, picked: readonly string[]): void {
  for (const id of picked) memory.unpublishedUserIds.add(id);
  memory.hasChanges = true;
}

function acknowledge(
  tx: Tx,
  publication: Publication,
  sent: {
    readonly head: PublishResult["head"];
    readonly picked: readonly string[];
    readonly creditsSeq: number;
    readonly settings: SettingsWithoutRestrictions;
  },
): PublishOutcome["outcome"] {
  const { row } = tx.memory;
  const { head, picked, creditsSeq } = sent;
  const found = head === "moved" ? null : head;
  const seq = head === "moved" ? row.acknowledged : (head?.seq ?? 0);
  if (found !== null && !isOwnSnapshot({ ...row, revision: publication.revision }, found)) {
    restoreUnpublished(tx.memory, picked);
    const { epoch } = row;
    changeWalletRow(tx, {
      conflict: JSON.stringify({ head: found, epoch, revision: publication.revision }),
    });
    logConflict(tx, found);
    return "conflict";
  }
  if (seq < row.acknowledged && !publication.everything) {
    restoreUnpublished(tx.memory, picked);
    changeWalletRow(tx, { publishAll: true, conflict: null });
    logWarning("book_restored", {
      org_id: row.orgId,
      acknowledged: row.acknowledged,
      book_seq: seq,
    });
    return "again";
  }
  tx.storage.transactionSync(() => deletePublishedRemovals(tx.sql, publication.revision));
  const publishAll = row.publishAll && !publication.everything;
  const { revision: acknowledged } = publication;
  changeWalletRow(tx, { acknowledged, creditsSeq, publishAll, conflict: null });
  const usedAt = publication.isUse ? publication.updatedAt : tx.memory.published.usedAt;
  tx.memory.published = { settings: sent.settings, usedAt };
  return "published";
}

function logConflict(tx: Tx, head: SnapshotHead): void {
  const { orgId, epoch, revision } = tx.memory.row;
  logAlert("wallet_book_conflict", {
    org_id: orgId,
    epoch,
    revision,
    book_epoch: head.epoch,
    book_seq: head.seq,
  });
}

function createPublication(
  tx: Tx,
  { endUsers, uses }: { readonly endUsers: readonly string[]; readonly uses: readonly KeyUse[] },
): Publication {
  const { row, ledger } = tx.memory;
  return {
    orgId: row.orgId,
    epoch: row.epoch,
    revision: row.revision,
    base: row.publishAll ? 0 : row.acknowledged,
    creditsMicro: ledger.balance,
    updatedAt: tx.nowMs,
    pages: pagesOf(tx, endUsers),
    uses: Array.from({ length: Math.ceil(uses.length / SNAPSHOT_PAGE_ROWS_MAX) }, (_, page) =>
      uses.slice(page * SNAPSHOT_PAGE_ROWS_MAX, (page + 1) * SNAPSHOT_PAGE_ROWS_MAX),
    ),
    alertsFrom: deleteOldAlerts(tx),
    everything: row.publishAll,
    isUse: row.publishAll || Math.abs(tx.nowMs - tx.memory.published.usedAt) >= USE_INTERVAL_MS,
  };
}

function* pagesOf(tx: Tx, endUserIds: readonly string[]): Generator<SnapshotPage> {
  const { sql, memory } = tx;
  const { settings, publishAll: isComplete, acknowledged, creditsSeq } = memory.row;
  const since = { acknowledged, creditsSeq, newestSeq: memory.ledger.seq };
  yield* pagesToPublish(sql, { endUserIds, isComplete, ...since });
  const isPublished = memory.published.settings === settings && !isComplete;
  if (!isPublished) yield { table: "settings", rows: [settingsToRow(settings, "d1")] };
}
