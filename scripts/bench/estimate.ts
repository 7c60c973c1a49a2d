import type { Place } from "./target.ts";

/** CPU per request of one round, in microseconds, by place. */
export type CpuRound = Readonly<Partial<Record<Place, number>>>;
/** What rounds say: their median, their quartiles, and the least, which noise can only add to. */
export type Estimate = {
  readonly value: number;
  readonly least: number;
  readonly quartiles: readonly [low: number, high: number];
};

/** The value below which a share (0 to 1) of all values lies, between two of them in proportion; NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low = NaN, high = low] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

/** CPU per request at a place. */
export function cpuOf(rounds: readonly CpuRound[], place: Place): Estimate {
  return estimate(rounds.map((round) => round[place] ?? NaN));
}

/**
 * How often the CPU of one place goes into that of another: the median of the rounds' own ratios, so
 * that what slows a whole round down cancels; the least is that of the two least CPU times.
 */
export function ratioOf(rounds: readonly CpuRound[], over: Place, under: Place): Estimate {
  const ratios = rounds.map((round) => (round[over] ?? NaN) / (round[under] ?? NaN));
  const least = cpuOf(rounds, over).least / cpuOf(rounds, under).least;
  return { ...estimate(ratios), least };
}

/** The median of values, their quartiles, and the least. */
export function estimate(values: readonly number[]): Estimate {
  return {
    value: quantile(values, 0.5),
    least: Math.min(...values),
    quartiles: [quantile(values, 0.25), quantile(values, 0.75)],
  };
}
