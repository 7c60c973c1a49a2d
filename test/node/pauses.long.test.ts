import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockScript, MockProvider } from "../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, OPENING, openAiEvent } from "../fixtures/openai-replies.ts";
import { recordMeasured } from "../measured.ts";
import type { Account } from "./support/account.ts";
import { call, makeKey, openRemoteAccount, revoke } from "./support/peer-keys.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

const STREAM_MS = 60_000;
const PACE_MS = 100;
const END_MS = 15_000;
const WORD = '"content":" word"';

let upstream: MockProvider;
let regions: TwoRegions;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(minute);
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

/** Sends a word in each event for a minute. */
const minute: MockScript = async (_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).write(openAiEvent(OPENING));
  for (let sentMs = 0; sentMs < STREAM_MS; sentMs += PACE_MS) {
    await sleep(PACE_MS);
    if (response.destroyed) return true;
    response.write(openAiEvent(chunkOf({ content: " word" })));
  }
  response.end(`${openAiEvent(FINISH)}${DONE}`);
  return true;
};

const messages = [{ role: "user", content: "Count words." }];
const body = { model: "slow/model", messages, max_tokens: 4000, stream: true };

/** Returns a stream's text, its end, and the receipt of its request. */
async function streamed(region: TestRegion, key: string, account: Account) {
  const response = await call(region, key, "/chat/completions", { body });
  expect(response.status).toBe(200);
  const text = await response.text();
  const endedMs = performance.now();
  await account.resolved();
  const id = response.headers.get("x-request-id") ?? "";
  const receipt = (await (await account.call(`/generations/${id}`)).json()) as Receipt;
  return { text, endedMs, receipt, words: text.split(WORD).length - 1 };
}

type Receipt = { readonly completion_tokens: number; readonly cost_micro: number };

const place = (name: "eu" | "us") => regions[name];

describe("a stream that takes a minute", () => {
  it("ends within 15 s of a pause, in both regions, and pays for the delivered output", async () => {
    const account = await openRemoteAccount(regions);
    const streams = (["eu", "us"] as const).map((name) =>
      streamed(place(name), account.key, account),
    );
    await sleep(9000);
    const pause = { scope: "organization", reason: "Costs", stop_running: true };
    const pausedMs = performance.now();
    const response = await account.call("/pauses", pause);
    expect(response.status).toBe(201);
    for (const name of ["eu", "us"] as const) {
      const refused = await call(place(name), account.key, "/chat/completions", { body });
      expect([refused.status, await refused.text()]).toEqual([
        403,
        expect.stringContaining("Costs"),
      ]);
    }
    const ended = await Promise.all(streams);
    for (const { text, endedMs, words, receipt } of ended) {
      expect(text).toContain('"code":"paused"');
      expect(endedMs - pausedMs).toBeLessThan(END_MS);
      expect(words).toBeGreaterThan(50);
      expect(Math.abs(receipt.completion_tokens - words)).toBeLessThanOrEqual(2);
    }
    recordMeasured({ slowestEndMs: Math.max(...ended.map(({ endedMs }) => endedMs - pausedMs)) });
  });

  it("ends within 15 s of a pause created 2 s after the stream's start, while another key's stream continues", async () => {
    const account = await openRemoteAccount(regions);
    const other = await makeKey(regions, account.key);
    const late = (["eu", "us"] as const).map((name) => streamed(place(name), other.key, account));
    const unfinished = call(regions.us, account.key, "/chat/completions", { body });
    await sleep(2000);
    const pausedMs = performance.now();
    const pause = { scope: "key", id: other.id, reason: "Costs", stop_running: true };
    expect((await account.call("/pauses", pause)).status).toBe(201);
    const running = await unfinished;
    const whole = running.text();
    await sleep(END_MS);
    const isOver = await Promise.race([whole.then(() => true), sleep(0).then(() => false)]);
    expect(isOver).toBe(false);
    const organization = { scope: "organization", reason: "Costs", stop_running: true };
    expect((await account.call("/pauses", organization)).status).toBe(201);
    for (const { text, endedMs } of await Promise.all(late)) {
      expect(text).toContain('"code":"paused"');
      expect(endedMs - pausedMs).toBeLessThan(END_MS);
    }
    expect(await whole).toContain('"code":"paused"');
  });

  it("breaks off within 15 s of the key's revocation, in both regions", async () => {
    const account = await openRemoteAccount(regions);
    const key = await makeKey(regions, account.key);
    const streams = (["eu", "us"] as const).map((name) => streamed(place(name), key.key, account));
    await sleep(7000);
    const revokedMs = performance.now();
    expect(await revoke(regions, account.key, key.id)).toBe(200);
    for (const { text, endedMs, receipt } of await Promise.all(streams)) {
      expect(text).toContain("invalid_api_key");
      expect(endedMs - revokedMs).toBeLessThan(END_MS);
      expect(receipt.cost_micro).toBeGreaterThan(0);
    }
  });
});
