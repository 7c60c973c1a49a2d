import { useEffect, useState } from "preact/hooks";

type Cell<T> = {
  readonly get: () => T;
  readonly set: (value: T) => void;
  readonly watch: (listener: () => void) => () => void;
};

/** Returns a value that components can watch. */
export function createCell<T>(initial: T): Cell<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useCell<T>(shared: Cell<T>): T {
  const [value, setValue] = useState(shared.get());
  useEffect(() => {
    const update = (): void => setValue(() => shared.get());
    update(); // the value may have changed since rendering
    return shared.watch(update);
  }, [shared]);
  return value;
}

const now = createCell(Date.now());
setInterval(() => document.hidden || now.set(Date.now()), 10_000);

export function useNow(): number {
  return useCell(now);
}
