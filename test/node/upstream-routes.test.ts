import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scripted, startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { SentRequest, UpstreamFixture } from "./support/upstream-fixture.ts";

/** Returns a price in micro-credits per input and output token. Cached tokens cost the same. */
const price = (input: number, output: number) => ({
  input: input * 1_000_000,
  cached: input * 1_000_000,
  cacheWrite: input * 1_000_000,
  output: output * 1_000_000,
});
const CHEAP = { price: price(1, 2) };
const DEAR = { price: price(10, 20) };
/**
 * Every request holds 30 prompt tokens and 100 output tokens, at least 64. The mock uses 12 and 3.
 */
const [PROMPT, LEAST, WHOLE] = [30, 64, 100];
/** The estimated charge without reported usage. */
const LIKELY = 26;
const EXACT = { cheap: 12 + 3 * 2, dear: 120 + 3 * 20 };

const status = (code: number) => scripted((response) => void response.writeHead(code).end("{}"));

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: {
      "cheap-down": ["down@1", "dear@1"],
      "cheap-down-stream": ["down@2", "dear@2"],
      "dear-down": ["down@3", "cheap@3"],
      "dear-first": ["dear@4", "cheap@4"],
      leaves: ["slow-down", "mock-silent"],
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
    },
    bindings: { DRAIN_S: "1" },
  });
});
afterAll(() => fixture.stop());

/** Returns the model names and output caps of the provider requests that `work` causes. */
async function sent(work: () => Promise<SentRequest>) {
  const before = fixture.mock.requests.length;
  const answer = await work();
  const requests = fixture.mock.requests.slice(before).map(({ json }) => {
    const cap = json["max_completion_tokens"] ?? json["max_tokens"];
    return `${String(json["model"])} ${String(cap)}`;
  });
  return { answer, requests };
}

describe("a model with two routes at different prices", () => {
  it.each([false, true])(
    "results in a single charge, at the price of the responding route, stream %s",
    async (stream) => {
      const { key, orgId } = await fixture.organization();
      const model = stream ? "cheap-down-stream" : "cheap-down";
      const answer = await fixture.send(key, model, { stream });
      expect([answer.status, answer.headers.get("x-route")]).toEqual([
        200,
        stream ? "up:dear@2" : "up:dear@1",
      ]);
      expect(answer.headers.get("x-attempts")).toBe("2");
      const { micro, held, records } = await fixture.spent(orgId);
      expect({ micro, held }).toEqual({ micro: EXACT.dear, held: 0 });
      expect(records).toMatchObject([{ provider: "up", price: DEAR.price, estimated: false }]);
      const cheap = await fixture.organization();
      await fixture.send(cheap.key, "dear-down", { stream });
      expect((await fixture.spent(cheap.orgId)).micro).toBe(EXACT.cheap);
    },
  );

  it("requires a hold at the higher price, so that a balance that covers only the cheaper route gets 402", async () => {
    const least = PROMPT * 10 + LEAST * 20;
    const { key, orgId } = await fixture.organization(least - 1);
    const { answer, requests } = await sent(() => fixture.send(key, "cheap-down"));
    expect([answer.status, requests]).toEqual([402, []]);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { balance_micro: least - 1, required_micro: least },
    });
    expect((await fixture.spent(orgId)).micro).toBe(0);
  });

  it("gets a lower output cap only on the more expensive route if the balance is low", async () => {
    const credits = PROMPT * 10 + 87 * 20;
    const first = await fixture.organization(credits);
    const dear = await sent(() => fixture.send(first.key, "dear-first"));
    expect([dear.requests, dear.answer.headers.get("x-granted-max-tokens")]).toEqual([
      ["dear@4 87"],
      "87",
    ]);
    const second = await fixture.organization(credits);
    const cheap = await sent(() => fixture.send(second.key, "dear-down"));
    expect(cheap.requests).toEqual(["down@3 87", `cheap@3 ${WHOLE}`]);
    expect(cheap.answer.headers.get("x-granted-max-tokens")).toBeNull();
    expect((await fixture.spent(second.orgId)).micro).toBe(EXACT.cheap);
  });

  it("charges a disconnected client for input and estimated output at the working route's price", async () => {
    const { key, orgId } = await fixture.organization();
    const before = fixture.mock.requests.length;
    const client = await fixture.open(key, "leaves");
    await expect.poll(() => fixture.mock.requests.length - before).toBe(2);
    await client.reset();
    const { micro, held, records } = await fixture.spent(orgId);
    expect(records).toMatchObject([{ price: DEAR.price, estimated: true }]);
    // estimated by time, because a JSON response's progress is invisible
    const output = records[0]?.usage.output ?? 0;
    expect(output).toBeGreaterThan(0);
    expect({ micro, held }).toEqual({ micro: LIKELY * 10 + output * 20, held: 0 });
    await expect.poll(fixture.inFlight).toBe(0);
  });
});
