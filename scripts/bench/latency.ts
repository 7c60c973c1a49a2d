import { quantile } from "../quantile.ts";
import { figureColumns, textTable } from "../table.ts";
import { formatNumber } from "./figure.ts";
import type { Figure } from "./figure.ts";
import type { Kind, Sample } from "./load.ts";
import type { Samples } from "./rounds.ts";

const GATEWAY: ReadonlySet<string> = new Set(["home", "peer"]);
const MOMENTS = { firstByteMs: "first byte", totalMs: "total" } as const;
const NAMES = { json: "JSON", stream: "stream" } as const;
const COLUMNS = figureColumns(
  "time in ms",
  "p50",
  "p99",
  "p50 over direct",
  "p99 over direct",
  "p50 over floor",
  "p99 over floor",
  "requests",
);

/**
 * Returns all times as figures, such as `home: JSON, first byte, p50`, also with `, over direct`
 * and `, over floor`.
 */
export function latencyFigures(samples: Samples): Figure[] {
  return rowsOf(samples).flatMap((row) =>
    (["p50", "p99"] as const).flatMap((share) => {
      const name = `${row.place}: ${row.what}, ${share}`;
      const { ms, overDirect, overFloor } = row[share];
      const all: Figure[] = [{ name, value: ms, unit: "ms" }];
      if (!GATEWAY.has(row.place)) return all;
      all.push({ name: `${name}, over direct`, value: overDirect, unit: "ms" });
      all.push({ name: `${name}, over floor`, value: overFloor, unit: "ms" });
      return all;
    }),
  );
}

/** Returns the times as a table with a row for each target, kind and moment. */
export function latencyTable(samples: Samples): string {
  const lines = rowsOf(samples).map(({ place, what, count, p50, p99 }) => {
    const over = [p50.overDirect, p99.overDirect, p50.overFloor, p99.overFloor].map(formatNumber);
    const added = GATEWAY.has(place) ? over : ["", "", "", ""];
    const times = [`${place}: ${what}`, formatNumber(p50.ms), formatNumber(p99.ms)];
    return times.concat(added, String(count));
  });
  return textTable(COLUMNS, lines);
}

/**
 * Returns times in ms for each target, kind and moment, and the difference to the targets without
 * the gateway.
 */
function rowsOf(samples: Samples) {
  return [...samples.keys()].flatMap((place) =>
    (["json", "stream"] as const).flatMap((kind) =>
      (["firstByteMs", "totalMs"] as const).map((moment) => rowOf(samples, place, kind, moment)),
    ),
  );
}

function rowOf(samples: Samples, place: string, kind: Kind, moment: keyof Sample) {
  const of = (where: string): number[] =>
    (samples.get(where)?.[kind] ?? []).map((sample) => sample[moment]);
  const timesAt = (share: number) => {
    const ms = quantile(of(place), share);
    const over = (where: string): number => ms - quantile(of(where), share);
    return { ms, overDirect: over("direct"), overFloor: over("floor") };
  };
  const what = `${NAMES[kind]}, ${MOMENTS[moment]}`;
  return { place, what, count: of(place).length, p50: timesAt(0.5), p99: timesAt(0.99) };
}
