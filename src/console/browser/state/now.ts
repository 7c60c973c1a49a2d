import { cell, useCell } from "./cell.ts";

const now = cell(Date.now());
setInterval(() => document.hidden || now.set(Date.now()), 10_000);

export function useNow(): number {
  return useCell(now);
}
