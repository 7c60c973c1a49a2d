import type { SnapshotHead } from "./snapshot.store.ts";
import { storedJson } from "../../shared/stored-json.ts";

/** The database's and the wallet's state when the conflict was found. */
type Conflict = {
  readonly head: SnapshotHead;
  readonly epoch: string;
  /** The publish that found the conflict. */
  readonly revision: number;
};

export function conflictText(conflict: Conflict): string {
  return JSON.stringify(conflict);
}

/**
 * Reports whether D1 belongs to this wallet: it has the same epoch, and none of its publishes is
 * newer. Publishes during a conflict don't count.
 */
export function ownsSnapshot(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: SnapshotHead,
): boolean {
  const met = row.conflict === null ? row : storedJson<Conflict>(row.conflict);
  return head.epoch === row.epoch && head.seq <= met.revision;
}
