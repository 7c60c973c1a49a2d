import type { DayRow } from "../lib/spend.ts";
import { useRead } from "./reads.ts";
import type { Read } from "./reads.ts";

export type SplitBy = "model" | "key" | "user";

/** Sums of each UTC day and each model, key or end user; null reads nothing. */
export function useSpend(
  by: SplitBy | null,
  { from, to }: { readonly from: string; readonly to: string },
  options: { readonly every?: number } = {},
): Omit<Read<unknown>, "data"> & { readonly data: readonly DayRow[] | undefined } {
  const query = { from, to, group_by: `day,${by ?? ""}` };
  const read = useRead(by === null ? null : "GET /v1/usage?by", { query }, options);
  return { ...read, data: read.data?.data };
}

/** Names of keys by their ids, as far as the reader may see them. */
export function useKeyNames(): (id: string | null) => string {
  const { data } = useRead("GET /v1/keys");
  const names = new Map(data?.keys.map(({ id, name }) => [id, name]));
  return (id) => (id === null ? "none" : (names.get(id) ?? id));
}
