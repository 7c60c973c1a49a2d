import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { againstFigures } from "../../scripts/bench/against.ts";
import { costFigures } from "../../scripts/bench/costs.ts";
import { mark, ratioOf } from "../../scripts/bench/figure.ts";
import type { Figure } from "../../scripts/bench/figure.ts";
import { hotFigures } from "../../scripts/bench/hot.ts";
import { latencyFigures } from "../../scripts/bench/latency.ts";
import { closeConnections, sendAtRate } from "../../scripts/bench/load.ts";
import type { TimedResponse } from "../../scripts/bench/load.ts";
import { openFigures } from "../../scripts/bench/open.ts";
import { noCounts } from "../../scripts/workers/counts.ts";

const others: Figure = { name: "cores kept busy by other programs", value: 0.1, unit: "" };
const counted = {
  completions: 100,
  counts: {
    ...noCounts(),
    objectCalls: 300,
    objectCallsBeforeUpstream: 200,
    objectRowsWritten: 300,
  },
  forged: 0,
};
// Ratios of 3, 2 and 10. Their median is 3. The ratio of medians is 6, and of minimums 2.5.
const json = [
  { floor: 100, home: 300, "home before": 300, peer: 600, "peer before": 600 },
  { floor: 50, home: 100, "home before": 50, peer: 250, "peer before": 250 },
  { floor: 40, home: 400, "home before": 400, peer: 320, "peer before": 320 },
];
const stream = [{ floor: 1000, pump: 3000, home: 3600, "home before": 3600 }];
const samples = new Map(
  ["direct", "floor", "home", "peer"].map((place, i) => {
    const kind = [{ firstByteMs: 1 + i, totalMs: 11 + i }];
    return [place, { json: kind, stream: kind }];
  }),
);
const answer = (ms: number, status: number) => {
  return { firstByteMs: ms / 2, ms, atMs: ms, status, isOk: status === 200 };
};
const hotRun = (ms: number, hot: readonly number[] = [], status = 200) => {
  return { others: [answer(ms, status)], hot: hot.map((is) => answer(ms, is)), cpuPercent: 50 };
};

/** The output of each mode for these measurements. */
const FIGURES: readonly Figure[] = [
  ...costFigures({
    cpu: { json, stream, typical: stream, crowd: stream },
    samples,
    counted,
    others,
  }),
  ...latencyFigures(samples),
  ...againstFigures(
    {
      pairs: { cpu: { json, stream: json }, firstByte: { json, stream: json } },
      counted: { before: { ...counted, completions: 50 }, now: counted },
      others,
    },
    "abc",
  ),
  ...openFigures(
    [
      {
        rate: { kind: "json", perSecond: 50 },
        times: {
          direct: [[2], [2]],
          floor: [[3], [4]],
          "home, one organization": [[5], [8]],
          "home before": [[4], [8]],
        },
        cpu: [{ floor: 100, "home, one organization": 300 }],
        failed: { "home, one organization": 1 },
      },
    ],
    others,
  ),
  ...hotFigures(
    [
      { alone: hotRun(100), beside: hotRun(110, [200, 503]) },
      { alone: hotRun(200), beside: hotRun(280, [503, 503]) },
      { alone: hotRun(100), beside: hotRun(120, [200, 200], 500) },
    ],
    others,
  ),
];

it.each<[name: string, value: number, mark?: string]>([
  ["object calls before the upstream call", 2, "ok"],
  ["object calls after it", 1, "ok"],
  ["rows written in objects per completion", 3],
  ["CPU per JSON, ratio", 3, "ok"],
  ["CPU per JSON at a peer, both regions, ratio", 6],
  ["CPU per stream, ratio", 3.6, "OVER"],
  ["CPU per stream, Turnpike to pump", 1.2],
  ["CPU per stream at 20 ms a word, pump's ratio", 3],
  ["time to first byte added, stream, p50", 1, "ok"],
  ["home: JSON, total, p99, over direct", 2],
  ["peer: stream, first byte, p50, over floor", 2],
  ["first byte added, stream, now less abc", 0],
  ["object calls after it per completion, abc", 2],
  ["JSON at 50/s, home, one organization: p99 over floor", 3],
  ["JSON at 50/s, home, one organization: p99 added, of the floor's", 3],
  ["JSON at 50/s: p99, of the commit's before", 1.125],
  ["JSON at 50/s: failed", 1, "OVER"],
  ["others' total, p99, rise", 20, "ok"],
  ["hot one's shed", 50],
  ["others not served", 1, "OVER"],
])("the benchmark computes %s from known measurements: %f", (name, value, expected) => {
  const figure = FIGURES.find((one) => one.name === name);
  expect(figure?.value).toBeCloseTo(value, 9);
  expect(figure === undefined ? "none" : mark(figure)).toContain(expected ?? "");
});

it("the benchmark counts an unmeasured figure as a missed target", () => {
  expect(mark({ name: "x", value: NaN, unit: "", budget: 3 })).toBe("OVER");
});

it("the benchmark's ratio stays stable despite slow rounds if most rounds are undisturbed", () => {
  const cpu = fc.double({ min: 50, max: 50_000, noNaN: true });
  const round = fc.record({ floor: cpu, home: cpu });
  const slower = fc.double({ min: 1, max: 20, noNaN: true });
  const sound = fc.array(fc.tuple(round, slower), { minLength: 1, maxLength: 21 });
  fc.assert(
    fc.property(sound, fc.array(round, { maxLength: 20 }), (pairs, more) => {
      const calm = pairs.map(([one]) => one);
      const busy = pairs.map(([one, by]) => ({ floor: one.floor * by, home: one.home * by }));
      const { value } = ratioOf(calm, "home", "floor");
      expect(ratioOf(busy, "home", "floor").value / value).toBeCloseTo(1, 9);
      const spoiled = ratioOf([...calm, ...more.slice(0, calm.length - 1)], "home", "floor").value;
      const ratios = calm.map(({ floor, home }) => home / floor);
      expect(spoiled).toBeGreaterThanOrEqual(Math.min(...ratios));
      expect(spoiled).toBeLessThanOrEqual(Math.max(...ratios));
    }),
  );
});

async function offerTo(listener: RequestListener, rate: number): Promise<TimedResponse[]> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const target = { name: "direct", url, keys: [], pids: [] } as const;
  const ask = { kind: "json", words: 1 } as const;
  const responses = await sendAtRate({ target, ask, rate, seconds: 0.4 });
  closeConnections();
  await new Promise((resolve) => server.close(resolve));
  return responses;
}

it("the benchmark counts a request as served only if its response is complete and successful", async () => {
  let turn = 0;
  const responses = await offerTo((_request, response) => {
    turn++;
    if (turn % 4 === 0) response.writeHead(503).end("{}");
    else if (turn % 4 === 1) response.destroy();
    else if (turn % 4 === 2) response.end("not whole");
    else response.end("{}");
  }, 100);
  expect(turn).toBe(40);
  expect(responses.filter(({ isOk }) => isOk)).toHaveLength(10);
  expect(responses).toHaveLength(40);
});

it("the benchmark measures a request's time from the planned start, even if the start is delayed", async () => {
  const BLOCKED_MS = 300;
  let answered = 0;
  const responses = await offerTo((_request, response) => {
    const until = performance.now() + (answered === 0 ? BLOCKED_MS : 0);
    // Blocks the server and the sender, which run in this process.
    while (performance.now() < until);
    answered++;
    response.end("{}");
  }, 100);
  expect(answered).toBe(40);
  // Requests due in the first 300 of 400 ms were sent later, so half of all took more than 100 ms.
  expect(responses.filter(({ ms }) => ms > 90).length).toBeGreaterThanOrEqual(20);
});
