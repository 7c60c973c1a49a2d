import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import { Account, sumOf } from "./support/account.ts";
import { startPersistentRegion } from "./support/two-regions.ts";

let kept: Awaited<ReturnType<typeof startPersistentRegion>>;
let mock: Awaited<ReturnType<typeof startMockProvider>>;
beforeAll(async () => {
  mock = await startMockProvider();
  kept = await startPersistentRegion({
    PROVIDERS: JSON.stringify([
      { id: "local", base_url: mock.url, profile: "generic", regions: ["eu"] },
    ]),
    MODELS: JSON.stringify([
      {
        id: "local/chat",
        kind: "chat",
        context: 8000,
        price: { input: 1_000_000, output: 2_000_000 },
        routes: [{ provider: "local", upstream_id: "chat" }],
      },
    ]),
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(async () => {
  await kept.stop();
  await mock.close();
});

const hello = { model: "sandbox/echo", messages: [{ role: "user" as const, content: "hello" }] };

type Tried = { readonly status: number; readonly retryAfterMs: number };

/** An unmodified SDK and its requests. `refused` runs before it sees a 429. */
function sdk(key: string, refused: (waitMs: number) => Promise<void> | void = () => {}) {
  const tried: Tried[] = [];
  const client = new OpenAI({
    apiKey: key,
    baseURL: kept.region().baseUrl,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      const retryAfterMs = Number(response.headers.get("retry-after-ms"));
      tried.push({ status: response.status, retryAfterMs });
      if (response.status !== 429) return response;
      const body = await response.arrayBuffer(); // complete before its region restarts
      await refused(retryAfterMs);
      return new Response(body, response);
    },
  });
  return { client, tried, statuses: () => tried.map((one) => one.status) };
}

/**
 * Ends the next waits of exactly this length immediately. The returned function gives their number.
 */
function skipWaits(waitMs: number): () => number {
  const real = globalThis.setTimeout;
  let skipped = 0;
  const timer = (callback: () => void, ms?: number): NodeJS.Timeout => {
    if (ms === waitMs) skipped += 1;
    return real(callback, ms === waitMs ? 0 : ms);
  };
  vi.spyOn(globalThis, "setTimeout").mockImplementation(timer);
  return () => skipped;
}

it("openai-node waits exactly as long as a 429 requires, and the second request succeeds", async () => {
  const account = await Account.open(kept.region, { rpmLimit: 1 });
  expect((await account.call("/models")).status).toBe(200);
  const skipped: (() => number)[] = [];
  const { client, tried, statuses } = sdk(account.key, async (waitMs) => {
    // the region's clock moves by the same time
    await kept.restart({ CLOCK_OFFSET_MS: String(waitMs) });
    client.baseURL = kept.region().baseUrl;
    // Uses the connections that the restart closed, so that the SDK's request doesn't.
    await fetch(`${kept.region().url}healthz`).catch(() => undefined);
    skipped.push(skipWaits(waitMs));
  });
  const answer = await client.chat.completions.create(hello);
  expect(answer.choices[0]?.message.content).toBe("hello");
  expect(statuses()).toEqual([429, 200]);
  expect(tried[0]?.retryAfterMs).toBeGreaterThan(1000);
  expect(skipped.map((count) => count())).toEqual([1]);
});

it("openai-node doesn't retry if a quota is used up or the balance is insufficient", async () => {
  const account = await Account.open(kept.region);
  await account.settings({ defaultUserDailyQuotaMicro: 0 });
  const blocked = sdk(account.key);
  await expect(
    blocked.client.chat.completions.create({ ...hello, user: "ann" }),
  ).rejects.toMatchObject({ status: 429, code: "end_user_quota_exceeded" });
  expect(blocked.statuses()).toEqual([429]);

  const poor = sdk((await Account.open(kept.region, { credits: 1 })).key);
  await expect(poor.client.chat.completions.create(hello)).rejects.toMatchObject({ status: 402 });
  expect(poor.statuses()).toEqual([402]);
});

it("openai-node pays only for the retry's response after a 502", async () => {
  const account = await Account.open(kept.region, { credits: 10_000 });
  const failing = mock.requests.length + 2; // the gateway retries once
  mock.script((_, response) => {
    if (mock.requests.length > failing) return false;
    response.writeHead(500).end();
    return true;
  });
  const { client, statuses } = sdk(account.key);
  await client.chat.completions.create({ ...hello, model: "local/chat" });
  expect(statuses()).toEqual([502, 200]);
  const rows = await account.ledger();
  expect(rows.map((row) => row.kind)).toEqual(["credit", "usage"]);
  expect((await account.resolved()).credits_micro).toBe(sumOf(rows));
});
