import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { quantile } from "../../scripts/quantile.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockScript, MockProvider } from "../fixtures/openai-mock.ts";
import { CHUNK, chunkOf, DONE, FINISH, OPENING, openAiEvent } from "../fixtures/openai-replies.ts";
import { recordMeasured } from "../measured.ts";
import { Account, answerOf } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const CLIENTS = 160;
const CALLERS = 16;
const PACE_MS = 8;
/** Words and marks that current models' tokenizers count as one token each. */
const TOKENS = [
  " the rain went over a small town and then it was very quiet again",
  " she asked an important question but nobody there had the answer",
  " we could see different people walking along the river in the morning",
]
  .flatMap((line) => line.split(/(?= )/))
  .concat([",", "."]);
/** Approximate bytes of an event with one token. */
const EVENT_BYTES = openAiEvent(chunkOf({ content: " river" })).length;

const DRAIN_MS = 1000;

/** The number of output tokens sent for each request, by its user's text. */
const sent = new Map<string, { count: number }>();
let upstream: MockProvider;
let regions: TwoRegions;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(writeCounted);
  const model = {
    id: "counted/model",
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 1_000_000, output: 2_000_000 },
    routes: [{ provider: "counted", upstream_id: "counted" }],
  };
  const provider = { id: "counted", base_url: upstream.url, regions: ["eu"] };
  const bindings = {
    PROVIDERS: JSON.stringify([provider]),
    MODELS: JSON.stringify([model]),
    DRAIN_S: String(DRAIN_MS / 1000),
  };
  regions = await startTwoRegions({ bindings });
});
afterAll(() => Promise.all([regions.stop(), upstream.close()]));

/** Sends a token in each event until the request's cap, then usage. Counts the sent tokens. */
const writeCounted: MockScript = async ({ json }, response) => {
  const { messages, max_tokens: cap } = json as unknown as {
    messages: { content: string }[];
    max_tokens: number;
  };
  const text = messages[0]?.content ?? "";
  const tokens = { count: 0 };
  sent.set(text, tokens);
  response.writeHead(200, { "content-type": "text/event-stream" }).write(openAiEvent(OPENING));
  for (let token = 0; token < cap; token++) {
    await sleep(PACE_MS);
    if (response.destroyed) return true;
    response.write(openAiEvent(chunkOf({ content: TOKENS[token % TOKENS.length] ?? "" })));
    tokens.count++;
  }
  const usage = { prompt_tokens: 20, completion_tokens: cap, total_tokens: 20 + cap };
  response.end(`${openAiEvent(FINISH)}${openAiEvent({ ...CHUNK, choices: [], usage })}${DONE}`);
  return true;
};

/**
 * Resets the connection after this number of bytes. Returns the request ID, its text and the
 * received output.
 */
async function leave(account: Account, n: number): Promise<Left> {
  const text = `Tell me story number ${n} of the town by the river.`;
  const connection = await account.open({
    model: "counted/model",
    messages: [{ role: "user", content: text }],
    max_tokens: 40 + ((n * 37) % 460),
    stream: true,
  });
  const bytes = (1 + ((n * 13) % 60)) * EVENT_BYTES;
  await connection.readUntil(() => answerOf(connection).body.length >= bytes);
  const { headers, body } = answerOf(connection);
  const id = headers.get("x-request-id") ?? "";
  await connection.reset();
  // the first chunk has empty content
  return { id, text, passedOn: body.split('"content":"').length - 2 };
}

/** Returns the value within a range that is nearest to a number. */
function nearest(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

type Left = { readonly id: string; readonly text: string; readonly passedOn: number };

it(`clients that disconnect from paced streams pay for reported usage or received output: ${CLIENTS} clients`, async () => {
  const account = await Account.open(() => regions.eu, { credits: 1_000_000_000 });
  const flights: Left[] = [];
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < CLIENTS) flights.push(await leave(account, next++));
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  await account.resolved();
  const errors: Record<"reported" | "estimated", number[]> = { reported: [], estimated: [] };
  for (const { id, text, passedOn } of flights) {
    const response = await account.call(`/generations/${id}`);
    expect(response.status).toBe(200);
    const { completion_tokens: billed, estimated } = (await response.json()) as {
      completion_tokens: number;
      estimated: boolean;
    };
    const { count } = sent.get(text) ?? { count: NaN };
    // The provider bills everything until the gateway closes the connection.
    const truth = estimated ? nearest(billed, passedOn, Math.max(passedOn, count)) : count;
    errors[estimated ? "estimated" : "reported"].push((100 * (billed - truth)) / truth);
  }
  const off = errors.estimated.map(Math.abs);
  const p95 = quantile(off, 0.95);
  const reportedWorst = Math.max(0, ...errors.reported.map(Math.abs));
  recordMeasured({ clients: CLIENTS, charged: flights.length, estimated: errors.estimated.length });
  recordMeasured({
    p50: quantile(off, 0.5),
    p95,
    bias: quantile(errors.estimated, 0.5),
    reportedWorst,
  });
  expect(errors.estimated.length).toBeGreaterThan(0);
  expect(errors.reported.length).toBeGreaterThan(0);
  expect(reportedWorst).toBe(0);
  expect(Math.abs(quantile(errors.estimated, 0.5))).toBeLessThan(25);
  expect(quantile(errors.estimated, 0.95)).toBeLessThan(25);
});
