import { cell, useCell } from "./cell.ts";

/** The time that relative times are told from; it moves every 10 s. */
const now = cell(Date.now());
setInterval(() => document.hidden || now.set(Date.now()), 10_000);

export function useNow(): number {
  return useCell(now);
}
