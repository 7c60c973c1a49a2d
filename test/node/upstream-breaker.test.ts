import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunkOf } from "../fixtures/openai-replies.ts";
import { endsLater, HELLO } from "./support/stream-scripts.ts";
import { operatorReads } from "./support/money.ts";
import { scripted, startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

const FIRST_OPEN_MS = 15_000;

/** The provider's current behavior by scenario. Others succeed. */
const behavior = new Map<string, { status: number } | "waits">();
const acting = scripted((response, { json }) => {
  const now = behavior.get(String(json["model"]));
  if (now === "waits") return;
  if (now !== undefined) return void response.writeHead(now.status).end("{}");
  response.writeHead(200, { "content-type": "application/json" }).end(GOOD);
});
const message = { role: "assistant", content: "Hello" };
const GOOD = JSON.stringify({
  object: "chat.completion",
  choices: [{ index: 0, message, finish_reason: "stop" }],
  usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
});

/** Each test has a route of its own, `acting@name`, before a good one. */
const NAMES = ["opens", "probe", "leaves", "health"];
const id = (name: string) => `acting@${name}`;

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: Object.fromEntries([
      ...NAMES.map((name) => [name, [id(name), "good"]] as const),
      ["breaks", ["breaks", "good"]],
      ["provoked", ["provoked", "good"]],
    ]),
    scripts: {
      acting,
      breaks: endsLater(HELLO, { error: { message: "no", code: 502 } }),
      provoked: endsLater(HELLO, chunkOf({}, "error")),
    },
    changes: {},
    bindings: { DRAIN_S: "0" },
  });
});
afterAll(() => fixture.stop());

/** Returns the number of requests to a route so far. */
const requestCount = (name: string): number =>
  fixture.mock.requests.filter(({ json }) => json["model"] === id(name)).length;

/** Sends sequential requests to a model. Returns the routes that served them. */
async function served(model: string, times: number, stream = false): Promise<string[]> {
  const { key } = await fixture.organization();
  const routes: string[] = [];
  for (let at = 0; at < times; at++) {
    const answer = await fixture.send(key, model, { stream });
    const route = answer.headers.get("x-route") ?? String(answer.status);
    routes.push(`${route} ${answer.headers.get("x-attempts") ?? ""}`.trim());
  }
  return routes;
}

describe("a route whose provider fails", () => {
  it("gets no request during its cooldown, then one probe request, and all requests once the probe succeeds", async () => {
    behavior.set(id("opens"), { status: 500 });
    expect(await served("opens", 5)).toEqual(Array.from({ length: 5 }, () => "up:good 2"));
    expect(requestCount("opens")).toBe(5);
    expect(await served("opens", 4)).toEqual(Array.from({ length: 4 }, () => "up:good 1"));
    expect(requestCount("opens")).toBe(5);
    await fixture.later(FIRST_OPEN_MS);
    expect(await served("opens", 3)).toEqual(["up:good 2", "up:good 1", "up:good 1"]);
    expect(requestCount("opens")).toBe(6);
    await fixture.later(FIRST_OPEN_MS); // now open for twice as long
    expect(await served("opens", 1)).toEqual(["up:good 1"]);
    await fixture.later(FIRST_OPEN_MS);
    behavior.delete(id("opens"));
    expect(await served("opens", 3)).toEqual(
      Array.from({ length: 3 }, () => `up:${id("opens")} 1`),
    );
  });

  it("gets no request after the provider has failed mid-stream five times", async () => {
    const expected = Array.from({ length: 5 }, () => "up:breaks 1");
    expect(await served("breaks", 5, true)).toEqual(expected);
    expect(await served("breaks", 1, true)).toEqual(["up:good 1"]);
  });

  it("remains in use after mid-stream failures that the requests themselves caused", async () => {
    const expected = Array.from({ length: 7 }, () => "up:provoked 1");
    expect(await served("provoked", 7, true)).toEqual(expected);
  });

  it("gets only one of many concurrent requests as a probe", async () => {
    behavior.set(id("probe"), { status: 503 });
    await served("probe", 3);
    behavior.set(id("probe"), "waits");
    await fixture.later(FIRST_OPEN_MS);
    const { key } = await fixture.organization();
    const probing = await fixture.open(key, "probe");
    await expect.poll(() => requestCount("probe")).toBe(4);
    expect(await served("probe", 8)).toEqual(Array.from({ length: 8 }, () => "up:good 1"));
    expect(requestCount("probe")).toBe(4);
    // The probe's client disconnects, which doesn't count against the route. The next request
    // probes again.
    await probing.reset();
    await expect.poll(fixture.inFlight).toBe(0);
    behavior.delete(id("probe"));
    expect(await served("probe", 1)).toEqual([`up:${id("probe")} 1`]);
  });
});

describe("the closed circuit breaker of a route", () => {
  it("doesn't open if clients disconnect while the provider is silent", async () => {
    behavior.set(id("leaves"), "waits");
    const { key } = await fixture.organization();
    for (let at = 1; at <= 6; at++) {
      const client = await fixture.open(key, "leaves");
      await expect.poll(() => requestCount("leaves")).toBe(at);
      await client.reset();
      await expect.poll(fixture.inFlight).toBe(0);
    }
    behavior.delete(id("leaves"));
    expect(await served("leaves", 1)).toEqual([`up:${id("leaves")} 1`]);
  });
});

it("GET /admin/v1/health lists routes in cooldown with the reason and end", async () => {
  behavior.set(id("health"), { status: 500 });
  await served("health", 5);
  const read = async () => {
    const { breakers } = await operatorReads<{ breakers: { route: string }[] }>(
      fixture.eu,
      "/health",
    );
    return breakers.find(({ route }) => route === `up:${id("health")}`);
  };
  const until = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(await read()).toEqual({ route: "up:acting@health", state: "open", until });
  await fixture.later(FIRST_OPEN_MS);
  expect(await read()).toEqual({ route: "up:acting@health", state: "half_open", until });
  behavior.delete(id("health"));
  await served("health", 1);
  expect(await read()).toBeUndefined();
});
