import { textTable } from "../table.ts";
import type { Column } from "../table.ts";
import { estimate, quantile } from "./estimate.ts";
import type { Estimate } from "./estimate.ts";
import { written } from "./figure.ts";
import type { Figure } from "./figure.ts";
import { nameOf } from "./open.ts";
import type { Open } from "./open.ts";

const SHARES = { p50: 0.5, p99: 0.99, "p99.9": 0.999 } as const;
/** How often what home adds at p99 may be what the floor adds. */
const TAIL_MAX = 3;
/** What every place is compared with. */
const BASES = ["direct", "floor"] as const;
const COLUMNS: readonly Column[] = [
  { title: "added in ms" },
  { title: "p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "p99.9", align: "right" },
  { title: "of the floor's: p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "p99.9", align: "right" },
  { title: "requests", align: "right" },
];

/** What each place adds over direct and over the floor: of the rounds' own, the median. */
export function openFigures(open: readonly Open[], others: Figure): Figure[] {
  return [...open.flatMap(figuresOf), others];
}

/** The same over direct as a table for a terminal, a row for each rate and place. */
export function openTable(open: readonly Open[]): string {
  const rows = open.flatMap(({ rate, times }) =>
    placesIn(times).map((place) => rowOf(nameOf(rate), times, place)),
  );
  return textTable(COLUMNS, rows);
}

function rowOf(rate: string, times: Open["times"], place: string): string[] {
  const added = textsOf((at) => addedIn(times, place, "direct", at));
  const shares = place === "floor" ? ["", "", ""] : textsOf((at) => ofFloor(times, place, at));
  return [`${rate}, ${place}`].concat(added, shares, String((times[place] ?? []).flat().length));
}

function textsOf(roundsAt: (at: number) => readonly number[]): string[] {
  return Object.values(SHARES).map((at) => written(estimate(roundsAt(at)).value));
}

function placesIn(times: Open["times"]): string[] {
  return Object.keys(times).filter((place) => place !== "direct");
}

function figuresOf({ rate, times, failed }: Open): Figure[] {
  const rows = placesIn(times).flatMap((place) => placeFigures(nameOf(rate), times, place));
  return [...rows, { name: `${nameOf(rate)}: failed`, value: failed, unit: "", budget: 0 }];
}

function placeFigures(rate: string, times: Open["times"], place: string): Figure[] {
  const figures: Figure[] = [];
  for (const [share, at] of Object.entries(SHARES)) {
    for (const base of BASES.filter((one) => one !== place)) {
      const name = `${rate}, ${place}: ${share} over ${base}`;
      figures.push({ name, unit: "ms", ...medianOf(addedIn(times, place, base, at)) });
    }
    if (place === "floor") continue;
    figures.push({
      name: `${rate}, ${place}: ${share} added, of the floor's`,
      unit: "x",
      ...medianOf(ofFloor(times, place, at)),
      ...(share === "p99" && place.startsWith("home") && { budget: TAIL_MAX }),
    });
  }
  return figures;
}

function medianOf(rounds: readonly number[]): Pick<Estimate, "value" | "quartiles"> {
  const { value, quartiles } = estimate(rounds);
  return { value, quartiles };
}

/** Of each round, how often a place adds what the floor adds, over direct. */
function ofFloor(times: Open["times"], place: string, at: number): number[] {
  const floor = addedIn(times, "floor", "direct", at);
  return addedIn(times, place, "direct", at).map((ms, round) => ms / (floor[round] ?? NaN));
}

/** Of each round, what a place's quantile is more than another's. */
function addedIn(times: Open["times"], place: string, base: string, at: number): number[] {
  const of = (name: string): number[] => (times[name] ?? []).map((round) => quantile(round, at));
  const bases = of(base);
  return of(place).map((ms, round) => ms - (bases[round] ?? NaN));
}
