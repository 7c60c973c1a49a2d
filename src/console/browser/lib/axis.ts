import { formatCount, formatBalance, formatPercent, formatCharge } from "./money.ts";
import { formatDuration } from "./time.ts";

/** The unit of a chart. Spend is rounded up, a balance down. `rate` is per second. */
export type ChartUnit = "spend" | "balance" | "count" | "ms" | "share" | "rate";

export const AXIS_LABEL_FORMATS: Readonly<Record<ChartUnit, (value: number) => string>> = {
  spend: formatCharge,
  balance: formatBalance,
  count: formatCount,
  ms: formatDuration,
  share: formatPercent,
  rate: (value) => formatCount(Math.round(value)),
};

type Axis = {
  readonly ticks: readonly number[];
  readonly labels: readonly string[];
  readonly low: number;
  readonly high: number;
  readonly isBeyond: (value: number) => boolean;
};

const TICKS_MAX = 6;
/** Bars above this multiple of the 95th percentile don't extend the axis. */
const OUTLIER_FACTOR = 5;
const OUTLIER_VALUES_MIN = 5;
const stepMinOf = (unit: ChartUnit): number => (unit === "share" ? 0.01 : 1);

/** Returns a chart's vertical axis, broken if a few values are far above all others. */
export function createAxis(values: readonly number[], unit: ChartUnit): Axis {
  const known = values.filter((value) => value !== 0).toSorted((a, b) => a - b);
  const usual = known[Math.floor(0.95 * (known.length - 1))] ?? 0;
  const breaks = known.length >= OUTLIER_VALUES_MIN && usual > 0;
  const isBeyond = (value: number): boolean => breaks && value > OUTLIER_FACTOR * usual;
  const max = Math.max(0, ...known.filter((value) => !isBeyond(value)));
  const min = Math.min(0, ...known);
  const step = stepOf(max - min || stepMinOf(unit), unit);
  const isBroken = known.some(isBeyond);
  const from = Math.floor(min / step + 1e-9);
  // On a broken axis, cut-off bars end in an extra step.
  const to = Math.max(1, Math.ceil(max / step - 1e-9)) + Number(isBroken);
  const ticks = Array.from({ length: to - from + 1 }, (_, i) => (from + i) * step);
  const labels = labelsOf(ticks, step, unit);
  return { ticks, labels, low: from * step, high: to * step, isBeyond };
}

function stepOf(span: number, unit: ChartUnit): number {
  const stepMin = Math.max(span / (TICKS_MAX - 2), stepMinOf(unit));
  const power = 10 ** Math.floor(Math.log10(stepMin) + 1e-9);
  const factor = [1, 2, 5, 10].find((one) => one * power >= stepMin * (1 - 1e-9)) ?? 10;
  return power < 1 ? Number((factor * power).toFixed(12)) : factor * power;
}

const UNIT_SIZES: Readonly<Record<ChartUnit, readonly (readonly [size: number, name: string])[]>> =
  {
    spend: [[1e6, ""]],
    balance: [[1e6, ""]],
    count: [
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
      [1, ""],
    ],
    ms: [
      [60_000, " min"],
      [1000, " s"],
      [1, " ms"],
    ],
    share: [[0.01, "%"]],
    rate: [[1, ""]],
  };

function labelsOf(ticks: readonly number[], step: number, unit: ChartUnit): readonly string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  const isMoney = unit === "spend" || unit === "balance";
  const [size, name] = UNIT_SIZES[unit].find(([at]) => largest >= at) ??
    UNIT_SIZES[unit].at(-1) ?? [1, ""];
  const needed = decimalsOf(step / size);
  const digits = isMoney && needed === 1 ? 2 : needed;
  return ticks.map((tick) => {
    const [whole = "0", decimals] = (Math.abs(tick) / size).toFixed(digits).split(".");
    const number = formatCount(Number(whole)) + (decimals === undefined ? "" : `.${decimals}`);
    return `${tick < 0 ? "−" : ""}${isMoney ? "$" : ""}${number}${name}`;
  });
}

function decimalsOf(step: number): number {
  for (let digits = 0; digits < 9; digits += 1) {
    if (Math.abs(Number(step.toFixed(digits)) / step - 1) < 1e-9) return digits;
  }
  return 9;
}

export function columnsPerLabel(columnWidth: number, labelWidth: number): number {
  const steps = [1, 2, 5, 7, 14, 30, 60, 120, 400];
  return steps.find((step) => step * columnWidth >= labelWidth) ?? 400;
}
