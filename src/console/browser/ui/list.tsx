import type { ComponentChildren } from "preact";
import type { CallInput, ReadCall } from "../api/client.ts";
import type { Calls } from "../api/types.ts";
import { useQuery } from "../state/route.ts";
import { ClearFilters } from "./filters.tsx";
import { usePages } from "./pages.ts";
import { Empty, ReadResult } from "./states.tsx";
import { Table } from "./table.tsx";
import type { Column } from "./table.tsx";

type Props<C extends ReadCall, T> = {
  readonly name: string;
  readonly call: C;
  readonly filling?: CallInput<C>;
  /** Returns a response's rows, and the cursor of the next page. */
  readonly read: (answer: Calls[C]["answer"]) => {
    readonly rows: readonly T[];
    readonly next: string | number | null;
  };
  readonly cursor?: string;
  readonly limit?: number;
  readonly every?: number;
  readonly height?: number;
  readonly columns: readonly Column<T>[];
  readonly keyOf?: (row: T) => string;
  readonly open?: (row: T) => void;
  /** The filter bar, and its fields' names in the address. */
  readonly filters?: ComponentChildren;
  readonly names?: readonly string[];
  readonly empty: string;
  readonly children?: (rows: readonly T[]) => ComponentChildren;
};

export function List<C extends ReadCall, T extends { readonly id: string }>({
  call,
  filling = {},
  read,
  cursor = "after",
  limit = 50,
  every = 0,
  height = 480,
  keyOf = ({ id }) => id,
  filters,
  names = [],
  empty,
  children,
  ...table
}: Props<C, T>) {
  const [query] = useQuery();
  const isFiltered = names.some((name) => query[name] !== undefined);
  const { page, rows, pager } = usePages(call, filling, { cursor, read, limit, every, isFiltered });
  return (
    <>
      <ReadResult read={page} height={height}>
        {() => (
          <Table
            {...table}
            rows={rows}
            keyOf={keyOf}
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
