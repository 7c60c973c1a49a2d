/** Which way an amount is shown when not all of its decimals are: never the way that looks better. */
type Side = "left" | "spent";

const MICROS = 1_000_000;

/**
 * Micros as dollars, with as many decimals as show the first two digits that are not zero: `$12.40`,
 * `$0.000012`. What is left is cut, what was spent is raised, so that neither looks better than it is.
 */
function shown(micros: number, side: Side): string {
  const sign = micros < 0 ? "-" : "";
  const size = Math.abs(micros);
  if (size === 0) return "$0.00";
  const digits = Math.max(2, Math.min(6, 7 - String(Math.floor(size)).length + 1));
  const step = 10 ** (6 - digits);
  const up = (side === "spent") !== micros < 0;
  const steps = up ? Math.ceil(size / step) : Math.floor(size / step);
  const [whole = "0", decimals = ""] = ((steps * step) / MICROS).toFixed(digits).split(".");
  return `${sign}$${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}.${trimmed(decimals)}`;
}

/** Raising may make a digit more: `$0.0100` is `$0.01`. Two decimals stay. */
function trimmed(decimals: string): string {
  return decimals.slice(0, 2) + decimals.slice(2).replace(/0+$/, "");
}

/** What somebody has: never more than it is. */
export function left(micros: number): string {
  return shown(micros, "left");
}

/** What somebody spent: never less than it is. */
export function spent(micros: number): string {
  return shown(micros, "spent");
}

/** All six decimals of an amount, for a bill whose lines must add up; a part of a micro shows too. */
export function exact(micros: number): string {
  const [whole = "0", decimals = ""] = (micros / MICROS).toFixed(8).split(".");
  return `$${whole}.${decimals.replace(/0{1,2}$/, "")}`;
}

/** The whole truth, for who points at an amount. */
export function inMicros(micros: number): string {
  return `${grouped(micros)} micros ($${(micros / MICROS).toFixed(6)})`;
}

/** Dollars of the API as whole micros. */
export function microsOf(dollars: number): number {
  return Math.round(dollars * MICROS);
}

/** A whole number with a thin space between its thousands. */
export function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** A whole number of what is named: `1 token`, `2 tokens`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Tokens in short: `940`, `12.4k`, `3.1M`; cut, never raised. */
export function short(count: number): string {
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

/** A share between 0 and 1: `12 %`, `< 1 %` for something, `> 99 %` for nearly all. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return "< 1 %";
  if (share < 1 && share > 0.99) return "> 99 %";
  return `${Math.round(share * 100)} %`;
}
