import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scripted, startUpstreamWorld } from "./support/upstream-world.ts";
import type { Asked, World } from "./support/upstream-world.ts";

/** A price in micros per token of input and output; a cached token costs as any other. */
const price = (input: number, output: number) => ({
  input: input * 1_000_000,
  cached: input * 1_000_000,
  cacheWrite: input * 1_000_000,
  output: output * 1_000_000,
});
const CHEAP = { price: price(1, 2) };
const DEAR = { price: price(10, 20) };
/** The prompt of every request is held at 30 tokens, its output at 100, at least 64; the mock uses 12 and 3. */
const [PROMPT, LEAST, WHOLE] = [30, 64, 100];
/** What it is charged at when nobody reported it. */
const LIKELY = 26;
const EXACT = { cheap: 12 + 3 * 2, dear: 120 + 3 * 20 };

const status = (code: number) => scripted((response) => void response.writeHead(code).end("{}"));
const IMAGE = {
  messages: [
    { role: "user", content: [{ type: "image_url", image_url: { url: "https://images.test/a" } }] },
  ],
};
const TOOLS = { tools: [{ type: "function", function: { name: "weather", parameters: {} } }] };

let world: World;
beforeAll(async () => {
  world = await startUpstreamWorld({
    models: {
      "cheap-down": ["down@1", "dear@1"],
      "cheap-down-stream": ["down@2", "dear@2"],
      "dear-down": ["down@3", "cheap@3"],
      "dear-first": ["dear@4", "cheap@4"],
      leaves: ["slow-down", "mock-silent"],
      five: ["down@5", "down@6", "down@7", "good@8", "good@9"],
      limits: ["one@1", "blind@1", "bare@1", "short@1", "whole@1"],
      "one-only": ["one@2"],
      "blind-only": ["blind@2"],
      "bare-only": ["bare@2"],
      "small-output": ["small@1"],
      doubled: ["doubled@1"],
      thinks: ["thinks@1"],
    },
    scripts: {
      down: status(500),
      "slow-down": scripted((response) => {
        setTimeout(() => response.writeHead(500).end("{}"), 20);
      }),
    },
    changes: {
      "cheap-down": { routes: [CHEAP, DEAR] },
      "cheap-down-stream": { routes: [CHEAP, DEAR] },
      "dear-down": { routes: [DEAR, CHEAP] },
      "dear-first": { routes: [DEAR, CHEAP] },
      leaves: { routes: [CHEAP, DEAR] },
      limits: {
        abilities: ["vision", "tools"],
        routes: [
          { limits: { choices: 1, lacks: ["tools"] } },
          { limits: { lacks: ["vision", "tools"] } },
          { limits: { lacks: ["tools"] } },
          { limits: { context: 1100, choices: 2 } },
        ],
      },
      "one-only": { routes: [{ limits: { choices: 1 } }] },
      "blind-only": { abilities: ["vision"], routes: [{ limits: { lacks: ["vision"] } }] },
      "bare-only": { routes: [{ limits: { lacks: ["tools"] } }] },
      "small-output": { routes: [{ limits: { maxOutput: 70 } }] },
      doubled: { routes: [{ limits: { outputFactor: 2 } }] },
      thinks: { thinkingFloor: 80 },
    },
    bindings: { DRAIN_S: "1" },
  });
});
afterAll(() => world.stop());

/** The upstream names and output caps of the requests that this work causes, in order. */
async function sent(work: () => Promise<Asked>) {
  const before = world.mock.requests.length;
  const answer = await work();
  const requests = world.mock.requests.slice(before).map(({ json }) => {
    const cap = json["max_completion_tokens"] ?? json["max_tokens"];
    return `${String(json["model"])} ${String(cap)}`;
  });
  return { answer, requests };
}

describe("two routes of different prices", () => {
  it.each([false, true])(
    "charge the price of the one that responds, once, stream %s",
    async (stream) => {
      const { key, orgId } = await world.organization();
      const model = stream ? "cheap-down-stream" : "cheap-down";
      const answer = await world.ask(key, model, { stream });
      expect([answer.status, answer.headers.get("x-route")]).toEqual([
        200,
        stream ? "up:dear@2" : "up:dear@1",
      ]);
      expect(answer.headers.get("x-attempts")).toBe("2");
      const { micro, held, records } = await world.spent(orgId);
      expect({ micro, held }).toEqual({ micro: EXACT.dear, held: 0 });
      expect(records).toMatchObject([{ provider: "up", price: DEAR.price, estimated: false }]);
      const cheap = await world.organization();
      await world.ask(cheap.key, "dear-down", { stream });
      expect((await world.spent(cheap.orgId)).micro).toBe(EXACT.cheap);
    },
  );

  it("hold the higher price: a balance for the cheaper one gets 402 without a call", async () => {
    const least = PROMPT * 10 + LEAST * 20;
    const { key, orgId } = await world.organization(least - 1);
    const { answer, requests } = await sent(() => world.ask(key, "cheap-down"));
    expect([answer.status, requests]).toEqual([402, []]);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { balance_micro: least - 1, required_micro: least },
    });
    expect((await world.spent(orgId)).micro).toBe(0);
  });

  it("get a lower cap only on the more expensive one if the balance is too low", async () => {
    const credits = PROMPT * 10 + 87 * 20;
    const first = await world.organization(credits);
    const dear = await sent(() => world.ask(first.key, "dear-first"));
    expect([dear.requests, dear.answer.headers.get("x-granted-max-tokens")]).toEqual([
      ["dear@4 87"],
      "87",
    ]);
    const second = await world.organization(credits);
    const cheap = await sent(() => world.ask(second.key, "dear-down"));
    expect(cheap.requests).toEqual(["down@3 87", `cheap@3 ${WHOLE}`]);
    expect(cheap.answer.headers.get("x-granted-max-tokens")).toBeNull();
    expect((await world.spent(second.orgId)).micro).toBe(EXACT.cheap);
  });

  it("charge a client that disconnects for input and elapsed time on the working one", async () => {
    const { key, orgId } = await world.organization();
    const before = world.mock.requests.length;
    const client = await world.open(key, "leaves");
    await expect.poll(() => world.mock.requests.length - before).toBe(2);
    await client.reset();
    const { micro, held, records } = await world.spent(orgId);
    expect(records).toMatchObject([{ price: DEAR.price, estimated: true }]);
    const output = records[0]?.usage.output ?? 0; // by time: a JSON response's progress is invisible
    expect(output).toBeGreaterThan(0);
    expect({ micro, held }).toEqual({ micro: LIKELY * 10 + output * 20, held: 0 });
    await expect.poll(world.inFlight).toBe(0);
  });
});

it("failover makes three calls for five routes, and charges nothing if they fail", async () => {
  const { key, orgId } = await world.organization();
  const { answer, requests } = await sent(() => world.ask(key, "five"));
  expect([answer.status, requests.length]).toEqual([502, 3]);
  expect(await world.spent(orgId)).toEqual({ micro: 0, held: 0, records: [] });
});

describe("a route that lacks features of its model", () => {
  const long = { messages: [{ role: "user", content: "word ".repeat(80) }] };
  const cases: readonly (readonly [string, object, string])[] = [
    ["text", {}, "one@1"],
    ["n of 2", { n: 2 }, "blind@1"],
    ["n of 3 and an image", { ...IMAGE, n: 3 }, "bare@1"],
    ["an image", IMAGE, "one@1"],
    ["tools", TOOLS, "short@1"],
    ["n of 3 and tools", { ...TOOLS, n: 3 }, "whole@1"],
    ["tools and a long prompt", { ...TOOLS, ...long }, "whole@1"],
  ];
  it.each(cases)(
    "gets no request with %s, which goes to the first route that supports it",
    async (_, more, route) => {
      const { key } = await world.organization();
      const { answer, requests } = await sent(() => world.ask(key, "limits", more));
      expect([answer.status, answer.headers.get("x-attempts")]).toEqual([200, "1"]);
      expect(requests.map((request) => request.split(" ")[0])).toEqual([route]);
    },
  );

  const refused: readonly (readonly [string, object, string])[] = [
    ["one-only", { n: 2 }, "n"],
    ["blind-only", IMAGE, "messages"],
    ["bare-only", TOOLS, "tools"],
  ];
  it.each(refused)(
    "returns 400 for %s if there is no other route, without a call or hold",
    async (model, more, param) => {
      const { key, orgId } = await world.organization();
      const { answer, requests } = await sent(() => world.ask(key, model, more));
      expect([answer.status, requests]).toEqual([400, []]);
      expect(JSON.parse(answer.text)).toMatchObject({
        error: { type: "invalid_request_error", param },
      });
      expect(await world.spent(orgId)).toEqual({ micro: 0, held: 0, records: [] });
    },
  );

  it("gets its own maximum output as the cap, as the header reports", async () => {
    const { key } = await world.organization();
    const { answer, requests } = await sent(() => world.ask(key, "small-output"));
    expect([requests, answer.headers.get("x-granted-max-tokens")]).toEqual([["small@1 70"], "70"]);
  });

  it("holds for output that is billed beyond the cap, and lowers the cap accordingly", async () => {
    const most = PROMPT + WHOLE * 2 * 2;
    const { key } = await world.organization(most);
    expect((await sent(() => world.ask(key, "doubled"))).requests).toEqual([`doubled@1 ${WHOLE}`]);
    const short = await world.organization(most - 1);
    const { requests } = await sent(() => world.ask(short.key, "doubled"));
    expect(requests).toEqual([`doubled@1 ${WHOLE - 1}`]);
  });

  it("returns 402 for a reasoning request if credits don't cover the minimum of reasoning and output", async () => {
    const think = { reasoning_effort: "low" };
    const enough = PROMPT + 81 * 2;
    const poor = await world.organization(enough - 1);
    const { answer, requests } = await sent(() => world.ask(poor.key, "thinks", think));
    expect([answer.status, requests]).toEqual([402, []]);
    expect((await world.ask(poor.key, "thinks", { reasoning_effort: "none" })).status).toBe(200);
    const { key } = await world.organization(enough);
    expect((await sent(() => world.ask(key, "thinks", think))).requests).toEqual(["thinks@1 81"]);
  });
});
