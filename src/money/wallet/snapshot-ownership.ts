import type { SnapshotHead } from "./snapshot.store.ts";
import { storedJson } from "../../shared/stored-json.ts";

/** Why the database isn't this wallet's: the database's state and the wallet's state when it found out. */
type Conflict = {
  readonly head: SnapshotHead;
  readonly epoch: string;
  /** The publish that met the conflict. Later rows of the database were never this wallet's. */
  readonly revision: number;
};

/** Returns a conflict as stored in the wallet's row. */
export function conflictText(conflict: Conflict): string {
  return JSON.stringify(conflict);
}

/**
 * Reports whether the database belongs to this wallet: same epoch, and not ahead of its publishes. Publishes
 * counted during a conflict don't count.
 */
export function ownsSnapshot(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: SnapshotHead,
): boolean {
  const met = row.conflict === null ? row : storedJson<Conflict>(row.conflict);
  return head.epoch === row.epoch && head.seq <= met.revision;
}
