import type { SnapshotHead } from "./snapshot.store.ts";
import { storedJson } from "../../shared/stored-json.ts";

/** Why the book is not this wallet's: what the book said, and what the wallet was when it found out. */
type Conflict = {
  readonly head: SnapshotHead;
  readonly epoch: string;
  /** The publish that met it: what the book has after that was never this wallet's. */
  readonly revision: number;
};

/** A conflict as the wallet's row keeps it. */
export function conflictText(conflict: Conflict): string {
  return JSON.stringify(conflict);
}

/**
 * Whether the book is this wallet's: of its epoch, and no further than the wallet has published. While
 * it has a conflict, what it counted since is no publish: else it would catch up by counting.
 */
export function ownsSnapshot(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: SnapshotHead,
): boolean {
  const met = row.conflict === null ? row : storedJson<Conflict>(row.conflict);
  return head.epoch === row.epoch && head.seq <= met.revision;
}
