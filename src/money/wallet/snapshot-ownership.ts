import type { SnapshotHead } from "./snapshot.store.ts";
import { storedJson } from "../../shared/stored-json.ts";

type Conflict = {
  readonly head: SnapshotHead;
  readonly epoch: string;
  readonly revision: number;
};

export function conflictText(conflict: Conflict): string {
  return JSON.stringify(conflict);
}

/**
 * Reports whether D1's snapshot belongs to this wallet: it has the same epoch and isn't newer.
 * During a conflict, compares with the revision before the conflict.
 */
export function ownsSnapshot(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: SnapshotHead,
): boolean {
  const compared = row.conflict === null ? row : storedJson<Conflict>(row.conflict);
  return head.epoch === row.epoch && head.seq <= compared.revision;
}
