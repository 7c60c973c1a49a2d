import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useQuery } from "../state/route.ts";
import { formatDuration } from "../lib/time.ts";
import { Export } from "./export.tsx";
import { Button, Count, Money, Time, Tokens } from "./basics.tsx";

type Cell = string | number | boolean | null;
export type Column<T> = {
  readonly id: string;
  readonly title: string;
  readonly value: (row: T) => Cell;
  /** The columns in CSV exports, by default the title in snake case and the value. */
  readonly csv?: readonly CsvColumn<T>[];
  readonly cell?: (row: T) => ComponentChildren;
  readonly align?: "right";
  readonly wide?: boolean;
};
type CsvColumn<T> = readonly [heading: string, value: (row: T) => Cell];

export function usd(micros: number | null): string | null {
  return micros === null ? null : (micros / 1_000_000).toFixed(6);
}

/** The buttons below a list of several pages. */
export type Pager<T> = {
  readonly label: string;
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
  readonly isFiltered: boolean;
  readonly all: () => AsyncIterable<readonly T[]>;
};
type Props<T> = {
  readonly name: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly open?: (row: T) => void;
  /** Set if the API returns the rows in pages, which can't be sorted or filtered here. */
  readonly pager?: Pager<T>;
  readonly filters?: ComponentChildren;
  readonly empty: ComponentChildren;
};
const PAGE_ROWS = 50;

/** A table with filters, sorting and export. The address stores its state. */
export function Table<T>(props: Props<T>) {
  const { rows, pager, filters, empty } = props;
  if (rows.length > 0 || pager?.isFiltered === true) {
    return pager ? <PagedTable {...props} pager={pager} /> : <LocalTable {...props} />;
  }
  return (
    <>
      {filters && <div class="filter-line">{filters}</div>}
      {empty}
    </>
  );
}

function PagedTable<T>(props: Props<T> & { pager: Pager<T> }) {
  const { name, columns, rows, pager, filters } = props;
  return (
    <>
      <div class="filter-line">
        {filters}
        <Export name={name} columns={columns} rows={pager.all} />
      </div>
      <Grid {...props} />
      {rows.length === 0 && <p class="muted center">No results</p>}
      {(pager.next ?? pager.previous) && <PageButtons at={pager} />}
    </>
  );
}

function LocalTable<T>(props: Props<T>) {
  const { name, columns, rows, filters } = props;
  const [query, update] = useQuery();
  const page = Number(query["page"] ?? 0);
  const setPage = (next: number): void => update({ page: next === 0 ? "" : String(next) });
  const found = sortRows(filterRows(rows, columns, query["q"] ?? ""), columns, query);
  const at = Math.min(page, lastPage(found.length));
  const first = at * PAGE_ROWS;
  const shown = found.slice(first, first + PAGE_ROWS);
  return (
    <>
      <div class="filter-line">
        <input
          type="search"
          placeholder="Filter  ( / )"
          aria-label="Filter"
          data-filter
          value={query["q"] ?? ""}
          onInput={(event) => update({ q: event.currentTarget.value, page: "" }, true)}
        />
        {filters}
        <Export name={name} columns={columns} rows={() => [found]} />
      </div>
      <Grid {...props} rows={shown} isSorted />
      {found.length === 0 && <p class="muted center">No results</p>}
      {found.length > PAGE_ROWS && (
        <PageButtons
          at={{
            label: `${first + 1} to ${first + shown.length} of ${found.length}`,
            previous: at > 0 ? () => setPage(at - 1) : undefined,
            next: at < lastPage(found.length) ? () => setPage(at + 1) : undefined,
          }}
        />
      )}
    </>
  );
}

function lastPage(rows: number): number {
  return Math.max(0, Math.ceil(rows / PAGE_ROWS) - 1);
}

function filterRows<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  text: string,
): readonly T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const all = columns.map(({ value }) => String(value(row) ?? "").toLowerCase());
    return words.every((word) => all.some((cell) => cell.includes(word)));
  });
}

/** Sorts rows by the address's column `sort`, descending with a minus. Missing values come last. */
function sortRows<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  query: Readonly<Record<string, string>>,
): readonly T[] {
  const sort = query["sort"] ?? "";
  const sorted = columns.find(({ id }) => id === sort.replace("-", ""));
  if (sorted === undefined) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [sorted.value(a), sorted.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "string" || typeof y === "string") {
      return sign * String(x).localeCompare(String(y));
    }
    return sign * (Number(x) - Number(y));
  });
}

/** A table without filters. Its headers sort the rows if `isSorted`. */
export function Grid<T>({
  name,
  columns,
  rows,
  keyOf,
  open,
  isSorted = false,
}: Pick<Props<T>, "name" | "columns" | "rows" | "keyOf" | "open"> & {
  readonly isSorted?: boolean;
}) {
  const [{ sort = "" }, update] = useQuery();
  const box = useRef<HTMLDivElement>(null);
  const shown = useFittingColumns(box, columns);
  return (
    <div ref={box} class="table" role="region" aria-label={name} tabIndex={0}>
      <table onKeyDown={moveInRows}>
        <thead>
          <tr>
            {shown.map((one) => (
              <HeadCell
                key={one.id}
                column={one}
                sort={sort}
                onSort={isSorted ? (next) => update({ sort: next }) : undefined}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={shown} open={open} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Hides `wide` columns, from the right, until the table fits. Exports keep them. */
function useFittingColumns<T>(
  box: { readonly current: HTMLDivElement | null },
  columns: readonly Column<T>[],
): readonly Column<T>[] {
  const [dropped, setDropped] = useState(0);
  const wide = columns.filter((one) => one.wide === true);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let width = element.clientWidth;
    const watch = new ResizeObserver(() => {
      if (element.clientWidth > width) setDropped(0);
      width = element.clientWidth;
    });
    watch.observe(element);
    const stop = watchWidth(element);
    return () => (watch.disconnect(), stop());
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const isCut = element !== null && element.scrollWidth > element.clientWidth;
    if (isCut && dropped < wide.length) setDropped(dropped + 1);
  });
  const hidden = new Set(wide.slice(wide.length - dropped));
  return columns.filter((one) => !hidden.has(one));
}

function watchWidth(box: HTMLElement): () => void {
  const watch = new ResizeObserver(() =>
    box.classList.toggle("fits", box.scrollWidth <= box.clientWidth),
  );
  watch.observe(box);
  if (box.firstElementChild) watch.observe(box.firstElementChild);
  return () => watch.disconnect();
}

const ORDERS = {
  none: { arrow: "", next: (id: string) => `-${id}` },
  descending: { arrow: " ↓", next: (id: string) => id },
  ascending: { arrow: " ↑", next: () => "" },
} as const;

function HeadCell<T>({
  column: { id, title, align, wide },
  sort,
  onSort,
}: {
  column: Column<T>;
  sort: string;
  onSort: ((sort: string) => void) | undefined;
}) {
  const classes = classesOf({ align, wide });
  if (title === "") return <td class={classes} />;
  if (onSort === undefined) {
    return (
      <th class={classes} scope="col">
        {title}
      </th>
    );
  }
  const downwards = sort === `-${id}` ? "descending" : "none";
  const direction = sort === id ? "ascending" : downwards;
  const { arrow, next } = ORDERS[direction];
  return (
    <th class={classes} scope="col" aria-sort={direction}>
      <button type="button" class="plain" onClick={() => onSort(next(id))}>
        {title}
        <span aria-hidden="true">{arrow}</span>
      </button>
    </th>
  );
}

type classesOfProps = { align?: string | undefined; wide?: boolean | undefined };
function classesOf({ align = "", wide }: classesOfProps): string {
  return `${align} ${wide ? "wide-only" : ""}`;
}

function Row<T>({
  row,
  columns,
  open,
}: {
  row: T;
  columns: readonly Column<T>[];
  open: Props<T>["open"] | undefined;
}) {
  const enter = open && (() => open(row));
  return (
    <tr
      class={open ? "opens" : ""}
      tabIndex={open ? 0 : undefined}
      onClick={(event) => {
        const inControl = event.target instanceof Element && event.target.closest("a,button,input");
        if (!inControl && String(getSelection()) === "") enter?.();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) enter?.();
      }}
    >
      {columns.map(({ id, value, cell, align, wide }) => (
        <td key={id} class={classesOf({ align, wide })}>
          {cell ? cell(row) : value(row)}
        </td>
      ))}
    </tr>
  );
}

function moveInRows(event: KeyboardEvent): void {
  const row = event.target instanceof Element ? event.target.closest("tr") : null;
  const to = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[
    event.key
  ];
  if (!(to instanceof HTMLElement)) return;
  event.preventDefault();
  to.focus();
}

function PageButtons({ at }: { at: Pick<Pager<unknown>, "label" | "previous" | "next"> }) {
  return (
    <div class="turn">
      <span class="small muted">{at.label}</span>
      <Button text="← Previous" disabled={!at.previous} onClick={at.previous} />
      <Button text="Next →" disabled={!at.next} onClick={at.next} />
    </div>
  );
}

type ColumnOptions<T> = Omit<Column<T>, "id" | "title" | "value">;

export function column<T>(
  id: string,
  title: string,
  value: (row: T) => Cell,
  more: ColumnOptions<T> = {},
): Column<T> {
  return { id, title, value, ...more };
}

function columnOfType<V extends Cell>(
  show: (value: V) => ComponentChildren,
  common: ColumnOptions<never> = {},
) {
  return <T,>(
    id: string,
    title: string,
    value: (row: T) => V | null,
    more: ColumnOptions<T> = {},
  ): Column<T> => {
    const cell = (row: T): ComponentChildren => {
      const one = value(row);
      return one === null ? "" : show(one);
    };
    return { id, title, value, cell, ...(common as ColumnOptions<T>), ...more };
  };
}

const RIGHT = { align: "right" } as const;
export const moneyColumn = columnOfType<number>((micros) => <Money micros={micros} />, RIGHT);
export const leftColumn = columnOfType<number>(
  (micros) => <Money micros={micros} kind="left" />,
  RIGHT,
);
export const countColumn = columnOfType<number>((count) => <Count count={count} />, RIGHT);
export const tokenColumn = columnOfType<number>((count) => <Tokens count={count} />, RIGHT);
export const durationColumn = columnOfType<number>(formatDuration, RIGHT);
export const rateColumn = columnOfType<number>((rate) => <Count count={Math.round(rate)} />, RIGHT);
export const codeColumn = columnOfType<string>((text) => <code class="small">{text}</code>);
export const strongColumn = columnOfType<string>((text) => <strong>{text}</strong>);

export function timeColumn<T>(
  id: string,
  title: string,
  value: (row: T) => string | number | null,
  more: ColumnOptions<T> & { readonly none?: string; readonly withClock?: boolean } = {},
): Column<T> {
  const { none = "never", withClock = false, ...rest } = more;
  return {
    id,
    title,
    value,
    cell: (row) => <Time at={value(row)} {...{ none, withClock }} />,
    ...rest,
  };
}

export function actionsColumn<T>(cell: (row: T) => ComponentChildren): Column<T> {
  return column("do", "Actions", () => null, { csv: [], cell });
}

/** Returns a column of buttons, or none without verbs. */
export function verbColumns<T, What extends string>(
  verbs: readonly (readonly [what: What, text: string, ...unknown[]])[],
  onDo: (what: What, row: T) => void,
  has: (row: T) => boolean = () => true,
): readonly Column<T>[] {
  if (verbs.length === 0) return [];
  const cell = (row: T): ComponentChildren =>
    has(row) &&
    verbs.map(([what, text]) => (
      <Button key={what} text={text} class="quiet" onClick={() => onDo(what, row)} />
    ));
  return [actionsColumn(cell)];
}
