import { afterAll, beforeAll, expect, it } from "vitest";
import type { RawConnection } from "./support/raw-request.ts";
import { HELLO, stays } from "./support/stream-scripts.ts";
import { ADMIN_TOKEN } from "./support/two-regions.ts";
import { startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

const STREAMS = 1000;
const AT_ONCE = 50;
const BURST = 400;

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: { good: ["good"], open: ["open"] },
    scripts: { open: stays(...HELLO) },
    bindings: { DRAIN_S: "0", UPSTREAM_IDLE_MS: "900000", METRICS_DELAY_MS: "0" },
  });
});
afterAll(() => fixture.stop());

const isAnswered = (received: Buffer): boolean => /Hello|"error"/.test(received.toString());

async function openStreams(key: string, count: number): Promise<RawConnection[]> {
  const open = await Promise.all(
    Array.from({ length: count }, () => fixture.open(key, "open", { stream: true })),
  );
  await Promise.all(open.map((one) => one.readUntil(isAnswered)));
  return open;
}

async function rejectionsByReason(): Promise<Record<string, number>> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await (await fetch(`${fixture.eu.adminUrl}/metrics`, { headers })).text();
  const lines = text.matchAll(/^turnpike_shed_total\{.*reason="(\w+)".*\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, reason, count]) => [reason, Number(count)]));
}

it(`a Worker has memory for ${STREAMS} streams of one organization and a burst of ${BURST} requests of another organization`, async () => {
  const [hot, other] = await Promise.all([fixture.organization(), fixture.organization()]);
  const open: RawConnection[] = [];
  while (open.length < STREAMS) {
    open.push(...(await openStreams(hot.key, AT_ONCE)));
  }
  const statuses = open.map((one) => one.received().toString().slice(9, 12));
  expect(statuses.filter((status) => status !== "200")).toEqual([]);
  expect(fixture.inFlight()).toBe(STREAMS);
  const burst = await Promise.all(
    Array.from({ length: BURST }, () => fixture.send(other.key, "good")),
  );
  const rejected = burst.filter(({ status }) => status !== 200);
  expect(rejected.filter(({ status }) => status !== 503)).toEqual([]);
  // A busy machine can lack CPU time, but never memory.
  const expected = rejected.length === 0 ? {} : { cpu: rejected.length };
  await expect.poll(rejectionsByReason).toEqual(expected);
  await Promise.all(open.map((one) => one.reset()));
});
