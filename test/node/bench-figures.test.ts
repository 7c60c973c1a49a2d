import { expect, it } from "vitest";
import { againstFigures } from "../../scripts/bench/against.ts";
import { othersOf } from "../../scripts/bench/beside.ts";
import { mark, table } from "../../scripts/bench/figure.ts";
import type { Figure } from "../../scripts/bench/figure.ts";
import { costFigures } from "../../scripts/bench/costs.ts";
import type { Measured } from "../../scripts/bench/costs.ts";
import { hotFigures } from "../../scripts/bench/hot.ts";
import type { HotRun } from "../../scripts/bench/hot.ts";
import { kneeFigures } from "../../scripts/bench/knee.ts";
import { latencyFigures, latencyTable } from "../../scripts/bench/latency.ts";
import { openFigures, openTable, placesOf, ratesOf } from "../../scripts/bench/open.ts";
import type { Kind, Sample } from "../../scripts/bench/load.ts";
import { noCounts } from "../../scripts/workers/counts.ts";

/** 101 requests of which the first byte comes after base, base + 1, ... ms, and the last `rest` ms later. */
function samplesFrom(base: number, rest = 10): Record<Kind, Sample[]> {
  const kind = (slower: number): Sample[] =>
    Array.from({ length: 101 }, (_, i) => {
      const firstByteMs = base + slower + i;
      return { firstByteMs, totalMs: firstByteMs + rest };
    });
  return { json: kind(0), stream: kind(1000) };
}

const samples = new Map<string, Record<Kind, Sample[]>>([
  ["direct", samplesFrom(1)],
  ["floor", samplesFrom(2)],
  ["home", samplesFrom(5)],
  ["peer", samplesFrom(10, 20)],
]);
const measured: Measured = {
  cpu: {
    // Ratios 3, 2 and 10: their median is 3, the ratio of medians would be 6, of the least 2.5.
    json: [
      { floor: 100, home: 300, peer: 600 },
      { floor: 50, home: 100, peer: 250 },
      { floor: 40, home: 400, peer: 320 },
    ],
    stream: [{ floor: 1000, pump: 3000, home: 3600 }],
    typical: [{ floor: 2000, pump: 5000, home: 6000 }],
    crowd: [{ floor: 2000, home: 5000 }],
  },
  samples,
  counted: {
    completions: 100,
    counts: {
      ...noCounts(),
      objectCalls: 300,
      objectCallsBeforeUpstream: 200,
      objectRowsWritten: 300,
      logLines: 50,
    },
    forged: 0,
  },
  others: { name: "cores kept busy by other programs", value: 0.1, unit: "" },
};

function named(rows: readonly Figure[], name: string): Figure | undefined {
  return rows.find((row) => row.name === name);
}

it("the bench pairs its rounds, counts per completion and marks what is over budget", () => {
  const rows = costFigures(measured);
  expect(named(rows, "CPU per JSON, ratio")).toMatchObject({
    value: 3,
    least: 2.5,
    budget: 3.5,
  });
  expect(named(rows, "CPU per JSON, Turnpike")).toMatchObject({ value: 300, least: 100 });
  expect(named(rows, "CPU per JSON at a peer, both regions, ratio")?.value).toBe(6);
  expect(named(rows, "CPU per stream, 64 at once, ratio")).toMatchObject({ value: 2.5, aim: 2.4 });
  expect(named(rows, "object calls after it")?.value).toBe(1);
  // 0.30 + 0.02 x 0.3 ms + 3 calls x (0.15 + 1.60 x 3 ms) + 3 rows, one of them deleted + half a log line at 0.60
  expect(named(rows, "list price per million completions")?.value).toBeCloseTo(5.0704, 9);
  expect(rows.filter((row) => mark(row) === "OVER").map((row) => row.name)).toEqual([
    "CPU per stream, ratio",
  ]);
  expect(table(rows)).toMatch(
    /CPU per stream, ratio +3\.60 x +3\.60 - 3\.60 +3\.60 +3\.5 +2\.7 +OVER/,
  );
});

it("a stream is read against the floor and against a bare pump, fast and at a typical pace", () => {
  const rows = costFigures(measured);
  expect(named(rows, "CPU per stream, pump's ratio")?.value).toBe(3);
  expect(named(rows, "CPU per stream, Turnpike to pump")?.value).toBeCloseTo(1.2, 9);
  expect(named(rows, "CPU per stream at 20 ms a word, ratio")?.value).toBe(3);
  expect(named(rows, "CPU per stream at 20 ms a word, pump's ratio")?.value).toBe(2.5);
});

it("two commits are compared round by round, over the same floor", () => {
  const { counted, others } = measured;
  // Ratios 1, 1.2 and 2; the ratio of medians would be 1.5.
  const json = [
    { floor: 10, home: 100, "home before": 100, peer: 300, "peer before": 100 },
    { floor: 10, home: 300, "home before": 250, peer: 300, "peer before": 100 },
    { floor: 10, home: 600, "home before": 300, peer: 300, "peer before": 100 },
  ];
  const stream = [{ floor: 2, home: 5, "home before": 4 }];
  const pairs = { cpu: { json, stream: json }, firstByte: { json: stream, stream } };
  const before = { ...counted, completions: 50 };
  const rows = againstFigures({ pairs, counted: { before, now: counted }, others }, "abc");
  expect(named(rows, "CPU per JSON, ratio")).toMatchObject({ value: 1.2, quartiles: [1.1, 1.6] });
  expect(mark(named(rows, "CPU per stream, ratio") as Figure)).toBe("OVER");
  expect(named(rows, "CPU per JSON at a peer, both regions, ratio")?.value).toBe(3);
  expect(named(rows, "first byte added, stream, abc")?.value).toBe(2);
  expect(named(rows, "first byte added, stream, now less abc")?.value).toBe(1);
  expect(named(rows, "first byte added, stream, ratio")?.value).toBe(1.5);
  expect(named(rows, "rows written in objects per completion, abc")?.value).toBe(6);
  expect(named(rows, "rows written in objects per completion, now")?.value).toBe(3);
});

it("what a steady rate adds is over direct and over the floor, and a failure is over its budget", () => {
  const floor = [
    [3, 3],
    [4, 4],
  ]; // adds 1, then 2
  const times = {
    direct: [
      [2, 2],
      [2, 2],
    ],
    floor,
    "home, one organisation": [
      [5, 5],
      [8, 8],
    ],
    portkey: [
      [4, 4],
      [8, 8],
    ],
  };
  const rate = { kind: "json", perSecond: 50 } as const;
  const cpu = [
    { floor: 100, "home, one organisation": 300, portkey: 200 },
    { floor: 100, "home, one organisation": 500, portkey: 300 },
  ];
  const failed = { "home, one organisation": 1, portkey: 2 };
  const rows = openFigures([{ rate, times, cpu, failed }], measured.others);
  expect(named(rows, "JSON at 50/s, floor: p50 over direct")?.value).toBe(1.5);
  const home = "JSON at 50/s, home, one organisation:";
  expect(named(rows, `${home} p50 over floor`)).toMatchObject({ value: 3, quartiles: [2.5, 3.5] });
  expect(named(rows, `${home} p99.9 over direct`)?.value).toBe(4.5);
  expect(named(rows, `${home} p99 added, of the floor's`)).toMatchObject({ value: 3, budget: 3 });
  expect(named(rows, "JSON at 50/s, portkey: p50 added, of the floor's")?.value).toBe(2.5);
  expect(named(rows, `${home} CPU per request, of the floor's`)?.value).toBe(4);
  expect(mark(named(rows, "JSON at 50/s: failed") as Figure)).toBe("OVER");
  expect(named(rows, "JSON at 50/s: failed")?.value).toBe(1);
  expect(named(rows, "JSON at 50/s, portkey: failed")).toMatchObject({ value: 2 });
  expect(ratesOf("10,s20")).toEqual([
    { kind: "json", perSecond: 10 },
    { kind: "stream", perSecond: 20 },
  ]);
  expect(ratesOf("10,fast")).toBeNull();
  const line =
    /JSON at 50\/s, home, one organisation +4\.50 +4\.50 +4\.50 +3\.00 +3\.00 +3\.00 +400 +4\.00 +4 +1$/m;
  expect(openTable([{ rate, times, cpu, failed }])).toMatch(line);
  expect(placesOf("home,away100")).toEqual(["home", "away100"]);
  expect(placesOf("home,abroad")).toBeNull();
});

it("other gateways are measured by their names, each once, and an unknown name is refused", () => {
  expect(othersOf("portkey")).toEqual(["portkey"]);
  expect(othersOf("litellm,portkey,litellm")).toEqual(["litellm", "portkey"]);
  for (const wrong of ["", "portkey,", "Portkey", "portkey,nobody"]) {
    expect(othersOf(wrong)).toBeNull();
  }
});

it("what others wait for beside a hot organisation is the median of the pairs' own rises", () => {
  const figures = hotFigures(
    [
      { alone: hotRun(100), beside: hotRun(110, [200, 503, 503, 200]) },
      { alone: hotRun(200), beside: hotRun(280, [503, 503, 503, 200]) },
      { alone: hotRun(100), beside: hotRun(120, [200, 200, 503, 200], 500) },
    ],
    measured.others,
  );
  const rise = named(figures, "others' total, p99, rise");
  expect(rise?.value).toBeCloseTo(20);
  expect(named(figures, "others' first byte, p50, alone")?.value).toBe(50);
  expect(named(figures, "others' first byte, p50, beside")?.value).toBe(60);
  expect(named(figures, "hot one's shed")?.value).toBe(50);
  expect(named(figures, "others not served")).toMatchObject({ value: 1, budget: 0 });
  expect(namesOf(figures).filter((name) => name.endsWith("rise"))).toHaveLength(4);
});

/** One answer to the others after `ms`, and the hot one's by status. */
function hotRun(ms: number, hot: readonly number[] = [], status = 200): HotRun {
  const answer = (is: number) => ({
    firstByteMs: ms / 2,
    ms,
    atMs: ms,
    status: is,
    isOk: is === 200,
  });
  return { others: [answer(status)], hot: hot.map(answer), cpuPercent: 50 };
}

it("a figure that was not measured keeps no budget", () => {
  expect(mark({ name: "x", value: NaN, unit: "", budget: 3 })).toBe("OVER");
});

it("times at home and at a peer are over the upstream's own and over the floor's, at p50 and p99", () => {
  const rows = latencyFigures(samples);
  expect(named(rows, "home: JSON, first byte, p50")?.value).toBe(55);
  expect(named(rows, "home: JSON, first byte, p99, over direct")?.value).toBe(4);
  expect(named(rows, "home: stream, total, p99")?.value).toBe(1000 + 5 + 99 + 10);
  expect(named(rows, "peer: stream, total, p50, over direct")?.value).toBe(19);
  expect(named(rows, "peer: stream, total, p50, over floor")?.value).toBe(18);
  expect(named(rows, "floor: JSON, total, p50, over direct")).toBeUndefined();
  const home = /home: JSON, first byte +55\.00 +104 +4\.00 +4\.00 +3\.00 +3\.00 +101/;
  expect(latencyTable(samples)).toMatch(home);
});

it("figures keep their names, which other programs read", () => {
  const step = { offered: 500, achieved: 499, p50Ms: 3, p99Ms: 9 };
  const knee = { last: step, low: step, steps: [], isFound: true };
  const costs = namesOf(costFigures(measured));
  expect(costs).toEqual([
    "object calls before the upstream call",
    "object calls after it",
    "D1 queries before the upstream call",
    ...["floor", "Turnpike", "ratio"].map((what) => `CPU per JSON, ${what}`),
    "CPU per JSON at a peer, both regions",
    "CPU per JSON at a peer, both regions, ratio",
    ...STREAM.map((what) => `CPU per stream, ${what}`),
    ...["floor", "Turnpike", "ratio"].map((what) => `CPU per stream, 64 at once, ${what}`),
    ...STREAM.map((what) => `CPU per stream at 20 ms a word, ${what}`),
    "time to first byte added, stream, p50",
    "rows written in objects per completion",
    "rows written in D1 per completion",
    "object requests per completion, alarms included",
    "list price per million completions",
    "object calls and D1 queries by forged keys",
    "cores kept busy by other programs",
  ]);
  const times = namesOf(latencyFigures(samples));
  expect(times).toEqual([
    ...timesAt("direct", [""]),
    ...timesAt("floor", [""]),
    ...["home", "peer"].flatMap((place) => timesAt(place, ["", ", over direct", ", over floor"])),
  ]);
  const knees = namesOf(kneeFigures({ all: knee, one: knee, others: measured.others }));
  expect(knees).toEqual([
    ...["in all", "of one organisation"].flatMap((which) =>
      ["rate", "p50 at it", "p99 at it", "low load's rate", "low load's p50", "low load's p99"].map(
        (what) => `knee ${which}, ${what}`,
      ),
    ),
    "cores kept busy by other programs",
  ]);
});

const STREAM = ["floor", "Turnpike", "ratio", "pump", "pump's ratio", "Turnpike to pump"];
const MOMENTS = ["JSON", "stream"].flatMap((kind) =>
  ["first byte", "total"].map((moment) => `${kind}, ${moment}`),
);

function timesAt(place: string, overs: readonly string[]): string[] {
  return MOMENTS.flatMap((moment) =>
    ["p50", "p99"].flatMap((share) => overs.map((over) => `${place}: ${moment}, ${share}${over}`)),
  );
}

function namesOf(rows: readonly Figure[]): string[] {
  return rows.map(({ name }) => name);
}
