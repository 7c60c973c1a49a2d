import type { ComponentChildren } from "preact";
import type { ApiCallParameters, ApiGetCall } from "../api/client.ts";
import type { Calls } from "../api/types.ts";
import { useQuery } from "../state/route.ts";
import { ClearFilters } from "./filters.tsx";
import { Empty, ReadResult } from "./states.tsx";
import { Table } from "./table.tsx";
import type { Column, Pager } from "./table.tsx";
import { buildUrl } from "../api/client.ts";
import { latestOf, readWithoutCache, useRead } from "../state/reads.ts";
import type { Read } from "../state/reads.ts";

type Paging<C extends ApiGetCall, T> = {
  readonly rowsOf: (answer: Calls[C]["answer"]) => readonly T[];
  /** The query parameter for the next page. */
  readonly cursor?: "after" | "offset";
  readonly limit?: number;
  readonly every?: number;
};
type Props<C extends ApiGetCall, T> = Paging<C, T> & {
  readonly name: string;
  readonly call: C;
  readonly filling?: ApiCallParameters<C>;
  readonly height?: number;
  readonly columns: readonly Column<T>[];
  readonly open?: (row: T) => void;
  /** The filter bar, and its fields' names in the address. */
  readonly filters?: ComponentChildren;
  readonly names?: readonly string[];
  readonly empty: string;
  readonly children?: (rows: readonly T[]) => ComponentChildren;
};

export function List<C extends ApiGetCall, T extends { readonly id: string }>(props: Props<C, T>) {
  const { call, filling = {}, height = 480, filters, names = [], empty, children } = props;
  const [query] = useQuery();
  const isFiltered = names.some((name) => query[name] !== undefined);
  const { page, rows, pager } = usePages(call, filling, { ...props, isFiltered });
  return (
    <>
      <ReadResult read={page} height={height}>
        {() => (
          <Table
            {...props}
            rows={rows}
            keyOf={({ id }) => id}
            pager={pager}
            filters={
              filters && (
                <>
                  {filters}
                  <ClearFilters names={names} />
                </>
              )
            }
            empty={<Empty text={empty} />}
          />
        )}
      </ReadResult>
      {children?.(rows)}
    </>
  );
}

const RATE_LIMIT_WAIT_MS = 2000;

/**
 * Keeps the visited pages' cursors in the address. Another list or filter starts at its first page.
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

type PageEnd = {
  readonly next_after?: string | number | null;
  readonly total?: number;
  readonly limit?: number;
  readonly offset?: number;
};

export function usePages<C extends ApiGetCall, T>(
  name: C,
  filling: ApiCallParameters<C>,
  {
    rowsOf,
    cursor = "after",
    limit = 50,
    isFiltered = false,
    every = 0,
  }: Paging<C, T> & { readonly isFiltered?: boolean },
): {
  readonly page: Read<Calls[C]["answer"]>;
  readonly rows: readonly T[];
  readonly pager: Pager<T>;
} {
  const nextOf = (answered: unknown): string | number | null => {
    const { next_after, total = 0, limit: size = 0, offset = 0 } = answered as PageEnd;
    if (cursor === "after") return next_after ?? null;
    return offset + size < total ? offset + size : null;
  };
  const [cursors, setCursors] = useCursors(buildUrl(name, filling));
  const at = (after: string | number | undefined, pageSize: number): ApiCallParameters<C> => ({
    ...filling,
    query: { ...filling.query, limit: pageSize, ...(after !== undefined && { [cursor]: after }) },
  });
  const page = useRead(name, at(cursors.at(-1), limit), { every });
  const answer = latestOf(page);
  const rows = answer === undefined ? [] : rowsOf(answer);
  const next = answer === undefined ? null : nextOf(answer);
  const from = cursors.length * limit;
  async function* all(): AsyncGenerator<readonly T[]> {
    for (let after: string | number | undefined, more = true; more;) {
      const outcome = await readWithoutCache(name, at(after, 100));
      if (!outcome.ok && outcome.failure.status === 429) {
        yield []; // the requests were rate limited, so the user can stop here
        await new Promise((resolve) => setTimeout(resolve, RATE_LIMIT_WAIT_MS));
        continue;
      }
      if (!outcome.ok) throw new Error(outcome.failure.message);
      yield rowsOf(outcome.value);
      after = nextOf(outcome.value) ?? undefined;
      more = after !== undefined;
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
