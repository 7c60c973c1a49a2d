import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { bindingsFor, PROVIDERS } from "../fixtures/provider-table.ts";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";

/** Tokens that the provider bills without sending them. */
const HIDDEN = 30_000;
const WORDS = 12;
/** A stream must be longer than the time after which its pace is known. */
const EVENT_MS = 100;
const INPUT = 12;
const PRICE = { input: 1_000_000, output: 10_000_000 };
const CAP = HIDDEN + 1000;
const SESSION_MICRO = 500_000;
const CALLS_MAX = 20;

const words = Array.from({ length: WORDS }, () => "word ");
const data = (payload: object): string => `data: ${JSON.stringify(payload)}\n\n`;
const named = (type: string, rest: object = {}): string =>
  `event: ${type}\n${data({ type, ...rest })}`;
const chunk = (delta: object, finish: string | null = null): string =>
  data({ id: "c", created: 1, choices: [{ index: 0, delta, finish_reason: finish }] });

type Endpoint = {
  readonly path: string;
  readonly provider: string;
  readonly body: (prompt: string) => object;
  readonly events: (output: number) => readonly string[];
};
const messagesOf = (content: string) => [{ role: "user", content }];

const ENDPOINTS: readonly Endpoint[] = [
  {
    path: "/v1/chat/completions",
    provider: "openai",
    body: (prompt) => ({ messages: messagesOf(prompt), max_tokens: CAP, reasoning_effort: "high" }),
    events: (output) => [
      chunk({ role: "assistant", content: "" }),
      ...words.map((content) => chunk({ content })),
      chunk({}, "stop"),
      data({
        id: "c",
        created: 1,
        choices: [],
        usage: {
          prompt_tokens: INPUT,
          completion_tokens: output,
          total_tokens: INPUT + output,
          completion_tokens_details: { reasoning_tokens: output - WORDS },
        },
      }),
      "data: [DONE]\n\n",
    ],
  },
  {
    path: "/v1/messages",
    provider: "anthropic",
    body: (prompt) => ({
      messages: messagesOf(prompt),
      max_tokens: CAP,
      thinking: { type: "enabled", budget_tokens: HIDDEN },
    }),
    events: (output) => [
      named("message_start", { message: messageOf({ output_tokens: 1 }) }),
      named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      ...words.map((text) =>
        named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
      ),
      named("content_block_stop", { index: 0 }),
      named("message_delta", {
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: output },
      }),
      named("message_stop"),
    ],
  },
  {
    path: "/v1/responses",
    provider: "openai, Responses",
    body: (prompt) => ({ input: prompt, max_output_tokens: CAP, reasoning: { effort: "high" } }),
    events: (output) => [
      named("response.created", { response: responseOf(null) }),
      named("response.output_item.added", { output_index: 0, item: itemOf([]) }),
      named("response.content_part.added", { ...AT, part: partOf("") }),
      ...words.map((delta) => named("response.output_text.delta", { ...AT, delta })),
      named("response.output_text.done", { ...AT, text: words.join("") }),
      named("response.content_part.done", { ...AT, part: WHOLE }),
      named("response.output_item.done", { output_index: 0, item: itemOf([WHOLE]) }),
      named("response.completed", {
        response: responseOf({
          input_tokens: INPUT,
          output_tokens: output,
          total_tokens: INPUT + output,
          output_tokens_details: { reasoning_tokens: output - WORDS },
        }),
      }),
    ],
  },
];

function messageOf(usage: object): object {
  const own = { id: "msg_1", type: "message", role: "assistant", model: "claude", content: [] };
  return { ...own, stop_reason: null, usage: { input_tokens: INPUT, ...usage } };
}

const AT = { item_id: "msg_1", output_index: 0, content_index: 0 };
const partOf = (text: string): object => ({ type: "output_text", text, annotations: [] });
const WHOLE = partOf(words.join(""));

function itemOf(content: readonly object[]): object {
  const status = content.length === 0 ? "in_progress" : "completed";
  return { id: "msg_1", type: "message", role: "assistant", status, content };
}

function responseOf(usage: object | null): object {
  const status = usage === null ? "in_progress" : "completed";
  const output = usage === null ? [] : [itemOf([WHOLE])];
  return { id: "resp_1", object: "response", created_at: 1, model: "m", status, output, usage };
}

type Leaving = {
  readonly endpoint: Endpoint;
  /** The number of words before the client disconnects. 0: before the headers. */
  readonly read: number;
};
const LEAVING: readonly Leaving[] = ENDPOINTS.flatMap((endpoint) =>
  [0, 1, WORDS - 1].map((read) => ({ endpoint, read })),
);

/** The provider's view of a case: its bill in micro-credits, whatever the gateway reads. */
type Provider = { billed: number; called: PromiseWithResolvers<number> };
const providers = new Map<string, Provider>();

function providerOf(prompt: string): Provider {
  const known = providers.get(prompt) ?? { billed: 0, called: Promise.withResolvers<number>() };
  providers.set(prompt, known);
  return known;
}

const CAPS = /"max(?:_output|_completion)?_tokens":(\d+)/;

function answerAll(): void {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, { body = null } = {}) => {
    const text = typeof body === "string" ? body : await new Response(body).text();
    const [prompt = ""] = /case \d+/.exec(text) ?? [];
    const endpoint = LEAVING[Number(prompt.slice(5))]?.endpoint;
    if (endpoint === undefined) throw new TypeError("connection refused");
    const output = Math.min(HIDDEN + WORDS, Number(CAPS.exec(text)?.[1]));
    const provider = providerOf(prompt);
    provider.billed += (INPUT * PRICE.input + output * PRICE.output) / 1_000_000;
    provider.called.resolve(200);
    const headers = { "content-type": "text/event-stream" };
    return new Response(paced(endpoint.events(output)), { headers });
  });
}

function paced(events: readonly string[]): ReadableStream {
  const rest = [...events];
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      await scheduler.wait(EVENT_MS);
      const event = rest.shift();
      if (event !== undefined) return controller.enqueue(new TextEncoder().encode(event));
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
}

function bindingsOf({ provider }: Endpoint) {
  const bindings = bindingsFor(PROVIDERS.filter(({ name }) => name === provider));
  const [model] = JSON.parse(String(bindings["MODELS"])) as object[];
  const sold = { ...model, max_output: 64_000, price: PRICE };
  return { ...env, ...bindings, MODELS: JSON.stringify([sold]), DRAIN_S: "1" };
}

function requestOf({ path, body }: Endpoint, prompt: string, key: string, signal?: AbortSignal) {
  return new Request(`https://eu.test${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/chat", stream: true, ...body(prompt) }),
    ...(signal !== undefined && { signal }),
  });
}

/** Disconnects from one request, and returns its status. */
async function leave({ endpoint, read }: Leaving, prompt: string, key: string): Promise<number> {
  const client = new AbortController();
  const context = createExecutionContext();
  const provider = providerOf(prompt);
  provider.called = Promise.withResolvers();
  const request = requestOf(endpoint, prompt, key, client.signal);
  const answering = Promise.resolve(app.fetch(request, bindingsOf(endpoint), context));
  const early = answering.then(({ status }) => status);
  const status = await (read > 0 ? early : Promise.race([early, provider.called.promise]));
  if (status === 200 && read === 0) client.abort();
  const response = await answering;
  if (status === 200 && read > 0) await readWords(response, read);
  else await response.text().catch(() => undefined);
  await waitOnExecutionContext(context);
  return status;
}

async function readWords(response: Response, count: number): Promise<void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  for (let text = ""; text.split("word ").length <= count;) {
    text += decoder.decode((await reader.read()).value, { stream: true });
  }
  await reader.cancel();
}

/** Disconnects repeatedly until the session has used up its budget. */
async function useUp(one: Leaving, prompt: string, key: string): Promise<number> {
  const body = { budget_dollars: SESSION_MICRO / 1_000_000, expires_in: 3600 };
  const { token } = await (
    await sendToWorker("/v1/sessions", { key, body })
  ).json<{ token: string }>();
  for (let calls = 0; calls < CALLS_MAX; calls++) {
    const status = await leave(one, prompt, token);
    if (status !== 200) return status;
  }
  return 200;
}

const statuses = new Map<string, number>();
let key: string;

beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
  answerAll();
  await Promise.all(
    LEAVING.map(async (one, at) => {
      statuses.set(`case ${at}`, await useUp(one, `case ${at}`, key));
    }),
  );
}, 120_000);
describe.each(LEAVING.map((one, at) => [one.endpoint.path, one.read, `case ${at}`] as const))(
  "a session with a $0.50 budget, whose requests to %s use 30,000 hidden reasoning tokens and disconnect after %i words",
  (_, __, prompt) => {
    it("uses up its budget before the provider has billed $1.00", () => {
      expect(statuses.get(prompt)).toBe(402);
      expect(providers.get(prompt)?.billed).toBeLessThanOrEqual(2 * SESSION_MICRO);
    });
  },
);

it.each(ENDPOINTS.map((one, at) => [one.path, one, at * 3] as const))(
  "a stream of %s that is read to the end costs the amount that the provider bills",
  async (_, one, at) => {
    answerAll();
    const before = providerOf(`case ${at}`).billed;
    const context = createExecutionContext();
    const request = requestOf(one, `case ${at}`, key);
    const response = await app.fetch(request, bindingsOf(one), context);
    expect(response.status).toBe(200);
    await response.text();
    await waitOnExecutionContext(context);
    const generation = await sendToWorker(
      `/v1/generations/${response.headers.get("x-request-id")}`,
      {
        key,
      },
    );
    const cost = providerOf(`case ${at}`).billed - before;
    expect(await generation.json()).toMatchObject({ estimated: false, cost_micro: cost });
  },
);
