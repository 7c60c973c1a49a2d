import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { findKnee, holds } from "../../scripts/bench/knee.ts";
import type { Knee } from "../../scripts/bench/knee.ts";
import { closeConnections, offerRate } from "../../scripts/bench/load.ts";
import type { Step } from "../../scripts/bench/load.ts";

const LOW: Step = { offered: 10, achieved: 10, p50Ms: 2, p99Ms: 4 };

/** A step of a machine that bears `capacity`, at once slow beyond it. */
function stepAt(rate: number, capacity: number): Step {
  const p99Ms = rate <= capacity ? 5 : 500;
  return { offered: rate, achieved: Math.min(rate, capacity), p50Ms: 2, p99Ms };
}

async function search(
  offered: (rate: number) => Step,
  from: number,
  steps = Infinity,
): Promise<Knee> {
  let made = 0;
  return findKnee({
    low: LOW,
    from,
    offer: async (rate) => {
      made++;
      return offered(rate);
    },
    isTimeUp: () => made >= steps,
  });
}

it("a step holds up to 5 times the low load's p99 and down to 97 % answered", () => {
  const step: Step = { offered: 100, achieved: 97, p50Ms: 3, p99Ms: 20 };
  expect(holds(step, LOW)).toBe(true);
  expect(holds({ ...step, p99Ms: 20.1 }, LOW)).toBe(false);
  expect(holds({ ...step, achieved: 96.9 }, LOW)).toBe(false);
  expect(holds({ ...step, p99Ms: NaN }, LOW)).toBe(false); // nothing was answered
});

it("the knee is the last rate that holds, to 4 % of what the machine bears, from below or above", async () => {
  const capacities = fc.double({ min: 20, max: 5000, noNaN: true });
  const beginnings = fc.double({ min: 0.1, max: 4, noNaN: true });
  await fc.assert(
    fc.asyncProperty(capacities, beginnings, async (capacity, share) => {
      const knee = await search((rate) => stepAt(rate, capacity), capacity * share);
      expect(knee.isFound).toBe(true);
      expect(knee.last.offered).toBeLessThanOrEqual(capacity);
      expect(knee.last.offered).toBeGreaterThan(capacity / 1.04);
    }),
  );
});

it("one step that fails by chance ends nothing: it is made again", async () => {
  const seen = new Set<number>();
  const shaky = (rate: number): Step => {
    const isFirst = !seen.has(rate);
    seen.add(rate);
    return stepAt(rate, isFirst && seen.size === 4 ? 0 : 1000);
  };
  const knee = await search(shaky, 100);
  expect(knee.last.offered).toBeGreaterThan(1000 / 1.04);
});

it("when time is up before a rate fails, the best that held is told, as not the knee", async () => {
  const knee = await search((rate) => stepAt(rate, 1e9), 100, 5);
  expect(knee).toMatchObject({ isFound: false });
  expect(knee.steps).toHaveLength(5);
  expect(knee.last.offered).toBeCloseTo(100 * 1.15 ** 4, 6);
});

it("where no rate holds there is no knee, and the search ends", async () => {
  const knee = await search((rate) => stepAt(rate, 0), 100);
  expect(knee).toMatchObject({ isFound: false, last: LOW });
});

const servers: Server[] = [];

afterEach(async () => {
  closeConnections();
  await Promise.all(
    servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))),
  );
});

async function offerTo(listener: RequestListener, rate: number) {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const target = { name: "direct", url, keys: [], pids: [] } as const;
  const ask = { kind: "json", words: 1 } as const;
  return offerRate({ target, ask, rate, seconds: 0.4, patienceMs: 20_000 });
}

it("what is shed, cut or broken off is offered and not achieved", async () => {
  let turn = 0;
  const step = await offerTo((_request, response) => {
    turn++;
    if (turn % 4 === 0) response.writeHead(503).end("{}");
    else if (turn % 4 === 1) response.destroy();
    else if (turn % 4 === 2) response.end("not whole");
    else response.end("{}");
  }, 100);
  expect(turn).toBe(40);
  expect(step).toMatchObject({ offered: 100, achieved: 25 });
});

it("times count from when a request was due: who has to wait to be sent has waited", async () => {
  const BLOCKED_MS = 300;
  let answered = 0;
  const step = await offerTo((_request, response) => {
    const until = performance.now() + (answered === 0 ? BLOCKED_MS : 0);
    // Neither the server nor the sender, which is in this process, gets on meanwhile.
    while (performance.now() < until);
    answered++;
    response.end("{}");
  }, 100);
  expect(answered).toBe(40);
  // Those due within the first 300 of 400 ms were sent after them: half of all took more than 100 ms.
  expect(step.p50Ms).toBeGreaterThan(90);
});
