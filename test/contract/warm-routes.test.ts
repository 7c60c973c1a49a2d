import { beforeAll, describe, expect, it, vi } from "vitest";
import { chat, openAccount, send } from "./client.ts";
import { upstreamBindings, upstreamCompletion, UPSTREAM_VARS } from "./upstream.ts";

const IDS = ["alpha", "beta"] as const;
type Id = (typeof IDS)[number];
const MODELS = JSON.stringify([
  {
    id: "two/chat",
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 1_000_000, output: 2_000_000 },
    routes: IDS.map((provider) => ({ provider, upstream_id: "chat" })),
  },
]);
const PROVIDERS = JSON.stringify(
  IDS.map((id) => {
    const base_url = `https://${id}.upstream.test/v1`;
    return { id, base_url, profile: "generic", secret: "MOCK_API_KEY", regions: ["eu"] };
  }),
);

type Message = { readonly role: string; readonly content: string };

/** Returns two providers that cache prompts. `fails` decides about each call. */
function mockProviders(fails: (id: Id) => boolean) {
  const seen: Record<Id, Set<string>> = { alpha: new Set(), beta: new Set() };
  const counts = { hits: 0, calls: [] as Id[] };
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const id = IDS.find((one) => new URL(request.url).hostname === `${one}.upstream.test`);
    if (id === undefined) return new Response("", { status: 503 });
    counts.calls.push(id);
    if (fails(id)) return new Response("{}", { status: 503 });
    const { messages } = await request.json<{ messages: readonly Message[] }>();
    // The previous message's prompt, which is cached completely.
    const isHit = seen[id].has(JSON.stringify(messages.slice(0, -2)));
    seen[id].add(JSON.stringify(messages));
    if (isHit) counts.hits++;
    return upstreamCompletion({
      prompt_tokens: 2000,
      completion_tokens: 5,
      total_tokens: 2005,
      prompt_tokens_details: { cached_tokens: isHit ? 1920 : 0 },
    });
  });
  return { counts, bindings: upstreamBindings({ ...UPSTREAM_VARS, PROVIDERS, MODELS }) };
}

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const RULES = "Answer in one short sentence of plain English. ".repeat(160);
const say = (role: string, content: string): Message => ({ role, content });

function promptOf(conversation: string, turn: number): Message[] {
  const messages = [say("system", RULES), say("user", `Conversation ${conversation}`)];
  for (let i = 1; i <= turn; i++) messages.push(say("assistant", "Yes."), say("user", `Next ${i}`));
  return messages;
}

type RequestOptions = { readonly body?: object; readonly headers?: Record<string, string> };

async function sendTurn(
  bindings: Env,
  { conversation, turn }: { readonly conversation: string; readonly turn: number },
  { body = {}, headers = {} }: RequestOptions = {},
): Promise<Response> {
  const messages = promptOf(conversation, turn);
  const sent = { model: "two/chat", max_tokens: 20, messages, ...body };
  const response = await chat(key, sent, { bindings, headers });
  expect([response.status, await response.clone().text()]).toEqual([200, expect.any(String)]);
  return response;
}

describe("a conversation with prompt caching", () => {
  it("misses the prompt cache at most once in 140 turns if a provider temporarily returns 503", async () => {
    let callsUntilFailure = -1;
    const { counts, bindings } = mockProviders((id) => id === "alpha" && callsUntilFailure-- === 0);
    for (let turn = 0; turn <= 7; turn++) {
      if (turn === 3) callsUntilFailure = 9;
      for (let i = 0; i < 20; i++) {
        await sendTurn(bindings, { conversation: `every ${i}`, turn });
      }
    }
    expect(counts.hits).toBeGreaterThanOrEqual(139);
    expect(counts.calls.filter((id) => id === "beta")).toHaveLength(5);
  });

  it.each<[string, RequestOptions]>([
    ["the start of its prompt", {}],
    ["prompt_cache_key", { body: { prompt_cache_key: "one" } }],
    ["session_id", { body: { session_id: "two" } }],
    ["x-session-id", { headers: { "x-session-id": "three" } }],
    ["x-session-affinity", { headers: { "x-session-affinity": "four" } }],
  ])(
    "stays with the route that replaced a failed route, identified by %s",
    async (name, options) => {
      let isDown = true;
      const { counts, bindings } = mockProviders((id) => isDown && id === "alpha");
      await sendTurn(bindings, { conversation: name, turn: 0 }, options);
      isDown = false;
      const response = await sendTurn(bindings, { conversation: name, turn: 1 }, options);
      expect(counts.calls).toEqual(["alpha", "beta", "beta"]);
      const id = response.headers.get("x-request-id") ?? "";
      const receipt = await send(`/v1/generations/${id}`, { key });
      expect(await receipt.json()).toMatchObject({ provider: "beta", cached_tokens: 1920 });
      await sendTurn(bindings, { conversation: `${name}, another`, turn: 0 });
      expect(counts.calls.at(-1)).toBe("alpha");
    },
  );

  it("switches to another provider only after a failure, not because of one request's preferences", async () => {
    let down: Id | null = "alpha";
    const { counts, bindings } = mockProviders((id) => id === down);
    const turn = (at: number, options?: RequestOptions) =>
      sendTurn(bindings, { conversation: "moves", turn: at }, options);
    await turn(0);
    down = null;
    await turn(1, { body: { provider: { ignore: ["beta"] } } });
    await turn(2);
    down = "beta";
    await turn(3);
    down = null;
    await turn(4);
    expect(counts.calls).toEqual(["alpha", "beta", "alpha", "beta", "beta", "alpha", "alpha"]);
  });

  it.each<[string, RequestOptions]>([
    ["its prompt is short", { body: { messages: [say("user", "Hi")] } }],
    ["the client orders its providers", { body: { provider: { order: ["alpha", "beta"] } } }],
    ["the client sorts its providers", { body: { provider: { sort: "price" } } }],
  ])("returns to the first route if %s", async (name, options) => {
    let isDown = true;
    const { counts, bindings } = mockProviders((id) => isDown && id === "alpha");
    await sendTurn(bindings, { conversation: name, turn: 0 }, options);
    isDown = false;
    await sendTurn(bindings, { conversation: name, turn: 1 }, options);
    expect(counts.calls).toEqual(["alpha", "beta", "alpha"]);
  });

  it("returns 400 for a session_id of more than 256 characters", async () => {
    const { bindings } = mockProviders(() => false);
    const body = { model: "two/chat", messages: promptOf("x", 0), session_id: "x".repeat(257) };
    const response = await chat(key, body, { bindings });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: "session_id" } },
    ]);
  });
});
