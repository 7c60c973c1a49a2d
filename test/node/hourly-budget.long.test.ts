import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { killRegion } from "./support/kill-region.ts";
import { workerdPid } from "../../scripts/workerd.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockScript, MockProvider } from "../fixtures/openai-mock.ts";
import {
  chunkOf,
  DONE,
  FINISH,
  OPENING,
  openAiEvent,
  usageChunk,
} from "../fixtures/openai-replies.ts";
import { recordMeasured } from "../measured.ts";
import { call, delivered, makeKey, openRemoteAccount } from "./support/peer-keys.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const LIMIT_MICRO = 1_000_000;
const PER_SECOND = 50;
const SECONDS = 24;
/** Seconds at which a region's process is killed. */
const KILLS: Readonly<Record<number, "eu" | "us">> = { 4: "eu", 10: "us" };
/** Micro-credits per token. */
const PRICE = { input: 1, output: 5 } as const;
const PROMPT_TOKENS = 12;
const LATENCY_MAX_MS = 600;

/** Cost of all requests that reached the provider, by its own count. */
let billed = 0;
let upstream: MockProvider;
let regions: TwoRegions;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(reasoning);
  const model = {
    id: "deep/thinker",
    kind: "chat",
    context: 128_000,
    max_output: 3000,
    price: { input: PRICE.input * 1e6, output: PRICE.output * 1e6 },
    routes: [{ provider: "deep", upstream_id: "deep" }],
  };
  const provider = { id: "deep", base_url: upstream.url, regions: ["eu", "us"] };
  const bindings = { PROVIDERS: JSON.stringify([provider]), MODELS: JSON.stringify([model]) };
  regions = await startTwoRegions({ bindings });
});
afterAll(() => Promise.all([regions.stop(), upstream.close()]));

/** Returns one word, and bills all tokens that the request allows, mostly as reasoning. */
const reasoning: MockScript = async ({ json }, response) => {
  const output = Number(json["max_completion_tokens"] ?? json["max_tokens"]);
  billed += PROMPT_TOKENS * PRICE.input + output * PRICE.output;
  const usage = {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: output,
    total_tokens: PROMPT_TOKENS + output,
    completion_tokens_details: { reasoning_tokens: Math.max(0, output - 1) },
  };
  await sleep(Math.random() * LATENCY_MAX_MS);
  if (json["stream"] === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = [OPENING, chunkOf({ content: "Yes" }), FINISH, usageChunk(usage)];
    response.end(`${events.map(openAiEvent).join("")}${DONE}`);
    return true;
  }
  const message = { role: "assistant", content: "Yes" };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const body = { id: "chatcmpl-1", object: "chat.completion", model: "deep", choices, usage };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  return true;
};

/** Returns the n-th request: JSON or a stream, with or without an output cap. */
function bodyOf(n: number): object {
  const messages = [{ role: "user", content: "Is it?" }];
  const cap = n % 3 === 0 ? {} : { max_completion_tokens: 200 + 100 * (n % 11) };
  return { model: "deep/thinker", messages, ...cap, stream: n % 2 === 0 };
}

it(`a budget of $1 per 60 minutes is never exceeded at ${PER_SECOND} requests a second, even if a region is killed`, async () => {
  const account = await openRemoteAccount(regions);
  const url = `${regions.eu.baseUrl}/orgs/${account.orgId}/settings`;
  const headers = {
    authorization: `Bearer ${account.key}`,
    "content-type": "application/json",
  };
  const credited = await fetch(`${regions.eu.adminUrl}/orgs/${account.orgId}/credits`, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify({ amount_micro: 50 * LIMIT_MICRO, reference: "more" }),
  });
  expect(credited.status).toBe(200);
  const budgets = [{ limit_dollars: 1, window: "60m" }];
  const set = await fetch(url, { method: "PATCH", headers, body: JSON.stringify({ budgets }) });
  expect(set.status).toBe(200);
  const keys = [account.key, (await makeKey(regions, account.key)).key];
  const statuses = new Map<number, number>();
  const sendChat = async (n: number): Promise<void> => {
    const region = n % 4 < 2 ? regions.eu : regions.us;
    const key = keys[n % 2] ?? account.key;
    const status = await call(region, key, "/chat/completions", { body: bodyOf(n) })
      .then(async (response) => {
        await response.text();
        return response.status;
      })
      .catch(() => 0); // the region was killed
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status === 200 && region === regions.us) servedFar++;
  };
  let servedFar = 0;
  const calls: Promise<void>[] = [];
  const kills: Promise<void>[] = [];
  const beganMs = performance.now();
  for (let n = 0; n < PER_SECOND * SECONDS; n++) {
    await sleep(Math.max(0, beganMs + (n * 1000) / PER_SECOND - performance.now()));
    const killed = n % PER_SECOND === 0 ? KILLS[n / PER_SECOND] : undefined;
    if (killed !== undefined) {
      kills.push(killRegion(regions[killed], workerdPid(regions[killed].port)));
    }
    calls.push(sendChat(n));
  }
  await Promise.all([...calls, ...kills]);
  await delivered(regions.us);
  const charged = (await account.ledger()).reduce(
    (sum, { kind, amount_micro: amount }) => (kind === "usage" ? sum - amount : sum),
    0,
  );
  const status = await (await account.call("/key")).json();
  const [budget] = (status as { budgets: { usage: number; held: number }[] }).budgets;
  recordMeasured({
    requests: calls.length,
    served: statuses.get(200) ?? 0,
    servedFar,
    rejected: statuses.get(402) ?? 0,
    cut: statuses.get(0) ?? 0,
    unavailable: statuses.get(503) ?? 0,
    chargedMicro: charged,
    billedMicro: billed,
    heldMicro: Math.round(1e6 * (budget?.held ?? 0)),
  });
  expect(charged).toBeLessThanOrEqual(LIMIT_MICRO);
  expect(billed).toBeLessThanOrEqual(LIMIT_MICRO);
  expect(charged + Math.round(1e6 * (budget?.held ?? 0))).toBeLessThanOrEqual(LIMIT_MICRO);
  expect(charged).toBeGreaterThan(LIMIT_MICRO / 4);
  expect(servedFar).toBeGreaterThan(0);
  expect(statuses.get(402)).toBeGreaterThan(0);
  expect(await account.differences()).toEqual([]);
});
