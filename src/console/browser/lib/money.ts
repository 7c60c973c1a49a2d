import { utcText } from "./time.ts";

/** The rounding of a shortened amount: amounts left are rounded down, amounts spent up. */
type Rounding = "left" | "spent";

const MICROS = 1_000_000;

/** Formats micro-credits as dollars, with at least two nonzero digits: `$12.40`, `$0.000012`. */
function formatDollars(micros: number, side: Rounding): string {
  const sign = micros < 0 ? "−" : "";
  const size = Math.abs(micros);
  if (size === 0) return "$0.00";
  const digits = Math.max(2, Math.min(6, 7 - String(Math.floor(size)).length + 1));
  const step = 10 ** (6 - digits);
  const up = (side === "spent") !== micros < 0;
  const steps = up ? Math.ceil(size / step) : Math.floor(size / step);
  const [whole = "0", decimals = ""] = ((steps * step) / MICROS).toFixed(digits).split(".");
  return `${sign}$${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}.${trimZeros(decimals)}`;
}

function trimZeros(decimals: string): string {
  return decimals.slice(0, 2) + decimals.slice(2).replace(/0+$/, "");
}

export function formatLeft(micros: number): string {
  return formatDollars(micros, "left");
}

export function formatSpent(micros: number): string {
  return formatDollars(micros, "spent");
}

/**
 * Formats micro-credits as dollars with six to eight decimals, for bills whose lines must add up.
 */
export function formatExact(micros: number): string {
  const [whole = "0", decimals = ""] = (micros / MICROS).toFixed(8).split(".");
  return `$${whole}.${decimals.replace(/0{1,2}$/, "")}`;
}

/** Rewrites an API error for display: micro-credits as dollars, and times in short form. */
export function rewriteAmounts(message: string): string {
  const timed = message.replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, utcText);
  if (!message.includes("micro-credits")) return timed;
  return timed.replaceAll(AMOUNT, (_, micros: string) =>
    formatExact(Number(micros)).replace(/0{1,4}$/, ""),
  );
}

/** Matches an amount, but not a part of a time or ID, nor a number of minutes. */
const AMOUNT = /(?<![\w:.-])(\d+)(?![\w:-]| minutes| [A-Z][a-z]{2,3},)(?: micro-credits)?/g;

export function inMicros(micros: number): string {
  return `${formatCount(micros)} micro-credits ($${(micros / MICROS).toFixed(6)})`;
}

export function microsOf(dollars: number): number {
  return Math.round(dollars * MICROS);
}

export function formatCount(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

export function countText(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Shortens a count, rounded down: `940`, `12.4k`, `3.1M`. */
export function formatShortCount(count: number): string {
  const unit = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ].find(([size]) => count >= Number(size));
  if (unit === undefined) return String(count);
  const [size, letter] = unit as [number, string];
  const value = Math.floor((count / size) * 10) / 10;
  return `${value >= 100 ? Math.floor(value) : value}${letter}`;
}

export function formatPercent(share: number): string {
  if (share > 0 && share < 0.01) return "<1%";
  if (share < 1 && share > 0.99) return ">99%";
  return `${Math.round(share * 100)}%`;
}
