import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import { sumIsolateGauges } from "../../src/events/metrics/series.ts";
import { openAccount } from "./client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { separateIsolate } from "./metrics-client.ts";

afterEach(() => setClock(null));

const LEFT_OUT = /^turnpike_routes_left_out_isolates.*$/gm;
const HELLO = { messages: [{ role: "user", content: "one two three" }] };

it("GET /admin/v1/metrics counts isolates with a route in cooldown until the isolates report recovery", async () => {
  const { key } = await openAccount();
  const name = crypto.randomUUID();
  const isolates = [separateIsolate(name), separateIsolate(name)];
  const leftOut = async () => (await isolates[0]?.metrics())?.match(LEFT_OUT) ?? [];
  const chatOn = (isolate: number, model: string) =>
    isolates[isolate]?.ask("/v1/chat/completions", key, { ...HELLO, model });
  await chatOn(0, "sandbox/echo");
  expect(await leftOut()).toEqual([]);
  for (const isolate of [0, 1]) {
    for (let i = 0; i < 5; i++) await chatOn(isolate, "sandbox/status-500");
    await chatOn(isolate, "sandbox/echo");
    const line = 'turnpike_routes_left_out_isolates{route="sandbox:status-500",state="open"}';
    expect(await leftOut()).toEqual([`${line} ${isolate + 1}`]);
  }
  const text = (await isolates[0]?.metrics()) ?? "";
  expect(text).toMatch(/^turnpike_isolates 2$/m);
  expect(text).toMatch(/^turnpike_isolates_age_seconds \d/m);
});

it("GET /admin/v1/metrics uses the last report of each isolate for five minutes", async () => {
  const stub = env.REGION_METRICS.getByName(`views-${crypto.randomUUID()}`);
  await stub.add({}, { isolate: "a", series: { x: 1, y: 1 } });
  await stub.add({}, { isolate: "b", series: { x: 1 } });
  await stub.add({}, { isolate: "a", series: { x: 1 } });
  const counted = await stub.read();
  const reportedMs = Math.max(...Object.values(counted.views ?? {}).map(({ atMs }) => atMs));
  expect(sumIsolateGauges(counted, reportedMs)).toMatchObject({ x: 2, turnpike_isolates: 2 });
  expect(sumIsolateGauges(counted, reportedMs)).not.toHaveProperty("y");
  expect(sumIsolateGauges(counted, reportedMs + 300_000)).toEqual({ turnpike_isolates: 0 });
});

it("the metrics object deletes reports of isolates that stopped reporting", async () => {
  const stub = env.REGION_METRICS.getByName(`gone-${crypto.randomUUID()}`);
  await stub.add({}, { isolate: "gone", series: {} });
  setClock(Date.now() + 300_000);
  await stub.add({}, { isolate: "here", series: {} });
  expect(Object.keys((await stub.read()).views ?? {})).toEqual(["here"]);
});

it("the metrics object stores at most 10,000 series per region, and still updates existing series", async () => {
  const stub = env.REGION_METRICS.getByName(`many-${crypto.randomUUID()}`);
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x${i}`, 1]));
  await stub.add(many);
  await stub.add({ x0: 1, other: 1 });
  const { counters } = await stub.read();
  expect(Object.keys(counters)).toHaveLength(10_000);
  expect(counters).toMatchObject({ x0: 2 });
});
