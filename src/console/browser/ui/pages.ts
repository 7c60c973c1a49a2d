import type { CallInput, ReadCall } from "../api/client.ts";
import type { Calls } from "../api/types.ts";
import { urlOf } from "../api/client.ts";
import { readOnce, useRead } from "../state/reads.ts";
import type { Read } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";

export type Pager<T> = {
  readonly label: string;
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
  readonly isFiltered: boolean;
  readonly all: () => AsyncIterable<readonly T[]>;
};
type PageOf<T> = { readonly rows: readonly T[]; readonly next: string | number | null };

const LIMIT = 50;
const RATE_LIMIT_WAIT_MS = 2000;

/**
 * Keeps the cursors of the visited pages in the address. Another list or filter starts at its first
 * page.
 */
function useCursors(list: string) {
  const [query, update] = useQuery();
  const [name = "", ...storedCursors] = (query["at"] ?? "").split("~");
  let listHash = 7;
  for (const letter of list) listHash = (listHash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003;
  const cursors: readonly string[] = name === String(listHash) ? storedCursors : [];
  const set = (next: readonly (string | number)[]): void =>
    update({ at: next.length === 0 ? "" : [listHash, ...next].join("~") });
  return [cursors, set] as const;
}

/** Reads a list page by page. `read` returns a response's rows and next cursor. */
export function usePages<C extends ReadCall, T>(
  name: C,
  filling: CallInput<C>,
  {
    read,
    cursor = "after",
    limit = LIMIT,
    isFiltered = false,
    every = 0,
  }: {
    readonly cursor?: string;
    readonly read: (answer: Calls[C]["answer"]) => PageOf<T>;
    readonly limit?: number;
    readonly isFiltered?: boolean;
    readonly every?: number;
  },
): {
  readonly page: Read<Calls[C]["answer"]>;
  readonly rows: readonly T[];
  readonly pager: Pager<T>;
} {
  const [cursors, setCursors] = useCursors(urlOf(name, filling));
  const at = (after: string | number | undefined, pageSize: number): CallInput<C> => ({
    ...filling,
    query: { ...filling.query, limit: pageSize, ...(after !== undefined && { [cursor]: after }) },
  });
  const page = useRead(name, at(cursors.at(-1), limit), { every });
  const { rows, next } = page.latest === undefined ? { rows: [], next: null } : read(page.latest);
  const from = cursors.length * limit;
  async function* all(): AsyncGenerator<readonly T[]> {
    for (let after: string | number | undefined, more = true; more;) {
      const outcome = await readOnce(name, at(after, 100));
      if (!outcome.ok && outcome.failure.status === 429) {
        yield []; // rate limited; the user can stop here
        await new Promise((resolve) => setTimeout(resolve, RATE_LIMIT_WAIT_MS));
        continue;
      }
      if (!outcome.ok) throw new Error(outcome.failure.message);
      const part = read(outcome.value);
      yield part.rows;
      more = part.next !== null;
      after = part.next ?? undefined;
    }
  }
  return {
    page,
    rows,
    pager: {
      label: rows.length === 0 ? "" : `${from + 1} to ${from + rows.length}`,
      previous: cursors.length > 0 ? () => setCursors(cursors.slice(0, -1)) : undefined,
      next: next === null ? undefined : () => setCursors([...cursors, next]),
      isFiltered,
      all,
    },
  };
}
