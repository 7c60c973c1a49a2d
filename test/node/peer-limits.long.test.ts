import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killRegion } from "./support/kill-region.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockScript, MockProvider } from "../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, OPENING, openAiEvent } from "../fixtures/openai-replies.ts";
import type { Account } from "./support/account.ts";
import { call, CHAT, delivered, openRemoteAccount, statusOf } from "./support/peer-keys.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

const PLACES = ["eu", "us"] as const;
const STREAM_MS = 8000;

let upstream: MockProvider;
let regions: TwoRegions;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(slow);
  const model = {
    id: "slow/model",
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 1_000_000, output: 2_000_000 },
    routes: [{ provider: "slow", upstream_id: "slow" }],
  };
  const provider = { id: "slow", base_url: upstream.url, regions: ["eu", "us"] };
  const bindings = { PROVIDERS: JSON.stringify([provider]), MODELS: JSON.stringify([model]) };
  regions = await startTwoRegions({ bindings });
});
afterAll(() => Promise.all([regions.stop(), upstream.close()]));

const slow: MockScript = async (_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).write(openAiEvent(OPENING));
  await sleep(STREAM_MS);
  response.end(`${openAiEvent(chunkOf({ content: "word" }))}${openAiEvent(FINISH)}${DONE}`);
  return true;
};

const messages = [{ role: "user", content: "Wait." }];
const stream = { body: { model: "slow/model", messages, max_tokens: 50, stream: true } };
const count = { body: { model: "sandbox/echo", messages } };

async function settings({ key, orgId }: Account, body: object): Promise<void> {
  const path = `/orgs/${orgId}/settings`;
  expect(await statusOf(regions.eu, key, path, { method: "PATCH", body })).toBe(200);
}

async function codeOf(region: TestRegion, { key }: Account, path: string, of: object) {
  const response = await call(region, key, path, of);
  const { error } = (await response.json()) as { error?: { code?: string; message: string } };
  return [response.status, error?.code ?? error?.message];
}

/** Sends a completion. On a slow machine, a region can first return 503. */
async function chat(region: TestRegion, account: Account) {
  const deadlineMs = performance.now() + 30_000;
  for (;;) {
    const answer = await codeOf(region, account, "/chat/completions", CHAT);
    if (answer[0] !== 503 || performance.now() > deadlineMs) return answer;
  }
}

describe("a budget with on_exceeded pause", () => {
  it.each(PLACES)(
    "pauses requests in both regions when a charge in %s reaches the budget's limit",
    async (name) => {
      const account = await openRemoteAccount(regions);
      await settings(account, {
        budgets: [{ limit_requests: 2, window: "60m", on_exceeded: "pause" }],
      });
      for (let i = 0; i < 2; i++) {
        expect(await chat(regions[name], account)).toEqual([200, undefined]);
      }
      await delivered(regions.us);
      for (const place of PLACES) {
        expect(await chat(regions[place], account)).toEqual([403, "paused"]);
      }
      const { pauses } = (await (await account.call("/pauses")).json()) as { pauses: object[] };
      expect(pauses).toMatchObject([{ scope: "organization", source: "budget" }]);
    },
  );
});

describe("count_tokens", () => {
  it("returns 403 in both regions from the start of a pause to its end", async () => {
    const account = await openRemoteAccount(regions);
    const counts = async (status: number): Promise<void> => {
      for (const place of PLACES) {
        const response = await call(regions[place], account.key, "/messages/count_tokens", count);
        expect(response.status).toBe(status);
        expect((await response.text()).includes("Audit")).toBe(status === 403);
      }
    };
    await counts(200);
    const response = await account.call("/pauses", { scope: "organization", reason: "Audit" });
    expect(response.status).toBe(201);
    await counts(403);
    const { id } = (await response.json()) as { id: string };
    const path = `/pauses/${id}`;
    expect(await statusOf(regions.eu, account.key, path, { method: "DELETE" })).toBe(200);
    await counts(200);
  });
});

describe("max_concurrent", () => {
  it("counts running requests of both regions, even after the home region is killed", async () => {
    const account = await openRemoteAccount(regions);
    await settings(account, { max_concurrent: 3 });
    const places = ["eu", "us", "eu", "us", "us", "eu"] as const;
    const streams = await Promise.all(
      places.map((name) => call(regions[name], account.key, "/chat/completions", stream)),
    );
    const statuses = streams.map(({ status }) => status).toSorted((one, other) => one - other);
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
    for (const name of PLACES) {
      expect(await chat(regions[name], account)).toEqual([429, "concurrency_limit_exceeded"]);
    }
    await killRegion(regions.eu);
    for (const name of PLACES) {
      expect(await chat(regions[name], account)).toEqual([429, "concurrency_limit_exceeded"]);
    }
    await Promise.all(streams.map((response) => response.text().catch(() => "cut")));
    await settings(account, { max_concurrent: 6 });
    await delivered(regions.us);
    expect(await chat(regions.us, account)).toEqual([200, undefined]);
  });
});
