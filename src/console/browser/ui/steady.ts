import { useRef, useState } from "preact/hooks";

type SteadyRows<T> = {
  readonly shown: readonly T[];
  readonly waiting: number;
  readonly showWaiting: () => void;
  readonly watch: {
    readonly onPointerEnter: () => void;
    readonly onPointerLeave: () => void;
    readonly onFocusIn: () => void;
    readonly onFocusOut: () => void;
  };
};

/** Holds back new rows while the pointer or focus is in the list. */
export function useSteadyRows<T extends { readonly id: string }>(
  rows: readonly T[],
  of: string,
): SteadyRows<T> {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [, rerender] = useState(0);
  const heldRows = useRef({ of, rows });
  const isHeld =
    (pointed || focused) && heldRows.current.of === of && heldRows.current.rows.length > 0;
  if (!isHeld) heldRows.current = { of, rows };
  const now = new Map(rows.map((row) => [row.id, row]));
  const shown = heldRows.current.rows;
  const known = new Set(shown.map(({ id }) => id));
  return {
    shown: shown.map((row) => now.get(row.id) ?? row),
    waiting: rows.filter(({ id }) => !known.has(id)).length,
    showWaiting: () => {
      heldRows.current = { of, rows };
      rerender((count) => count + 1);
    },
    watch: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: () => setFocused(false),
    },
  };
}
