import type { SnapshotHead } from "./snapshot.store.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

type Conflict = {
  readonly head: SnapshotHead;
  readonly epoch: string;
  readonly revision: number;
};

export function conflictJson(conflict: Conflict): string {
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
  const compared = row.conflict === null ? row : parseStoredJson<Conflict>(row.conflict);
  return head.epoch === row.epoch && head.seq <= compared.revision;
}
