import type { ComponentChildren } from "preact";
import { Count, Money, Time, Button } from "./basics.tsx";
import type { Cell, Column } from "./table.tsx";

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
export const codeColumn = columnOfType<string>((text) => <code class="small">{text}</code>);
export const strongColumn = columnOfType<string>((text) => <strong>{text}</strong>);

export function timeColumn<T>(
  id: string,
  title: string,
  value: (row: T) => string | number | null,
  more: ColumnOptions<T> & { readonly withClock?: boolean } = {},
): Column<T> {
  const { withClock = false, ...rest } = more;
  return {
    id,
    title,
    value,
    cell: (row) => <Time at={value(row)} withClock={withClock} />,
    ...rest,
  };
}

export function verbsColumn<T, What extends string>(
  verbs: readonly (readonly [what: What, text: string, ...unknown[]])[],
  onDo: (what: What, row: T) => void,
  has: (row: T) => boolean = () => true,
): Column<T> {
  const cell = (row: T): ComponentChildren =>
    has(row) &&
    verbs.map(([what, text]) => (
      <Button key={what} text={text} class="quiet" onClick={() => onDo(what, row)} />
    ));
  return column("do", "To do", () => null, { csv: [], cell });
}
