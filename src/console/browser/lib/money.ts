import { utcText } from "./time.ts";

const MICROS = 1_000_000;

/** Formats micro-credits as dollars with two to `digits` decimals. */
function formatDollars(micros: number, digits: number, round: (steps: number) => number): string {
  const step = 10 ** (6 - digits);
  const size = Math.abs((round(micros / step) * step) / MICROS);
  const [whole = "0", decimals = ""] = size.toFixed(digits).split(".");
  return `${micros < 0 ? "−" : ""}$${formatCount(Number(whole))}.${trimZeros(decimals)}`;
}

function trimZeros(decimals: string): string {
  return decimals.slice(0, 2) + decimals.slice(2).replace(/0+$/, "");
}

/** Formats a balance or limit. Rounds $10 or more down to cents. Shows smaller amounts exactly. */
export function formatBalance(micros: number): string {
  return formatDollars(micros, Math.abs(micros) < 10 * MICROS ? 6 : 2, Math.floor);
}

/**
 * Formats a charge (positive or negative), rounded up, with at least two nonzero digits: `$12.40`,
 * `$0.000012`.
 */
export function formatCharge(micros: number): string {
  const digits = 8 - String(Math.floor(Math.abs(micros))).length;
  const round = micros < 0 ? Math.floor : Math.ceil;
  return formatDollars(micros, Math.max(2, Math.min(6, digits)), round);
}

/** Formats micro-credits as dollars with six to eight decimals, for bills whose lines add up. */
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

/** Matches an amount, but not a number of minutes, or a part of a time or ID. */
const AMOUNT = /(?<![\w:.-])(\d+)(?![\w:-]| minutes| [A-Z][a-z]{2,3},)(?: micro-credits)?/g;

/** Formats an amount as micro-credits, with the exact dollars. */
export function formatMicros(micros: number): string {
  return `${formatCount(micros)} micro-credits ($${(micros / MICROS).toFixed(6)})`;
}

export function dollarsToMicros(dollars: number): number {
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
