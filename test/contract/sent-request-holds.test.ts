import { PDF_DATA_URL_PREFIX } from "../../src/models/core/core-request.ts";
import { describe, expect, it } from "vitest";
import { pdfOf } from "../fixtures/pdf.ts";
import { RESPONSES_CHAT } from "../fixtures/responses-replies.ts";
import { balanceOf, openAccount, send } from "./client.ts";
import { mockUpstream, upstreamBindings } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

type Json = Record<string, unknown>;

/** $0.04: 20,000 tokens of prompt. */
const CREDITS = 40_000;
const TOKENS = 20_000;
const PRICE = { input: 2_000_000, output: 10_000_000 };
const model = (id: string, provider: string, upstream_id: string) => ({
  id,
  kind: "chat",
  context: 1_000_000,
  max_output: 4096,
  abilities: ["tools", "vision", "reasoning"],
  price: PRICE,
  routes: [{ provider, upstream_id }],
});

const BINDINGS = {
  MODELS: JSON.stringify([
    model("mock/claude", "anthropic", "claude-sonnet-4-5"),
    model("mock/own", "own", "gpt-6-sol"),
  ]),
  PROVIDERS: JSON.stringify([
    {
      id: "own",
      base_url: "https://responses.upstream.test/v1",
      profile: "openai",
      secret: "MOCK_API_KEY",
      regions: ["eu"],
    },
  ]),
  RESIDENCY: "relaxed",
  ANTHROPIC_API_KEY: "anthropic.canary.secret",
};

/**
 * Returns the cost at a host that bills a token per four bytes of input, and one token of output.
 */
function billed({ body }: UpstreamCall): number {
  return Math.ceil(new TextEncoder().encode(JSON.stringify(body)).length / 4);
}

function answerTo(call: UpstreamCall): Response {
  const usage = { input_tokens: billed(call), output_tokens: 1 };
  if (call.url.endsWith("/messages")) {
    const content = [{ type: "text", text: "a" }];
    return Response.json({
      type: "message",
      role: "assistant",
      content,
      stop_reason: "end_turn",
      usage,
    });
  }
  const answer = JSON.parse(String(RESPONSES_CHAT.text.json.body)) as Json;
  return Response.json({ ...answer, usage: { ...usage, total_tokens: usage.input_tokens + 1 } });
}

const HI = { role: "user", content: "Hi" };
const assistantTurn = (...content: Json[]) => ({
  messages: [HI, { role: "assistant", content }, HI],
});
const userTurn = (...content: Json[]) => ({ messages: [{ role: "user", content }] });
const result = (type: string, content: unknown) => ({ type, tool_use_id: "srvtoolu_1", content });
const tool = (name: string, more: Json = {}) => ({
  name,
  input_schema: { type: "object" },
  ...more,
});

const fn = (name: string, description: string) => ({ type: "function", name, description });
/** Betas that allow more fields. */
const BETAS = "advanced-tool-use-2025-11-20,inline-tools-2026-09-15,context-management-2025-06-27";

type Carrier = readonly [name: string, body: (text: string) => Json];

/** Fields that can carry text to Anthropic. */
const CLAUDE: readonly Carrier[] = [
  [
    "instructions of a client's attribution",
    (text) => ({ system: `x-anthropic-billing-header: ${text}` }),
  ],
  [
    "a page in the history",
    (url) => assistantTurn(result("web_fetch_tool_result", { type: "web_fetch_result", url })),
  ],
  [
    "a program's output in the history",
    (stdout) =>
      assistantTurn(
        result("bash_code_execution_tool_result", {
          type: "bash_code_execution_result",
          stdout,
          stderr: "",
          return_code: 0,
          content: [],
        }),
      ),
  ],
  [
    "the input of a server tool",
    (text) =>
      assistantTurn({
        type: "server_tool_use",
        id: "srvtoolu_1",
        name: "web_search",
        input: { text },
      }),
  ],
  ["examples of a tool", (text) => ({ tools: [tool("a", { input_examples: [{ text }] })] })],
  [
    "tools of a message",
    (text) => ({ messages: [{ ...HI, tools: [tool("a", { description: text })] }] }),
  ],
  [
    "a turn with only thinking",
    (thinking) => assistantTurn({ type: "thinking", thinking, signature: "c2ln" }),
  ],
  [
    "a turn with only redacted thinking",
    (data) => assistantTurn({ type: "redacted_thinking", data }),
  ],
  ["an unknown field of a tool", (text) => ({ tools: [tool("a", { notes: text })] })],
  ["an unknown field of a block", (text) => userTurn({ type: "text", text: "a", notes: text })],
  ["an unknown field of the output's settings", (text) => ({ output_config: { notes: text } })],
  [
    "edits of the context",
    (text) => ({
      context_management: {
        edits: [{ type: "clear_tool_uses_20250919", exclude_tools: [text], notes: text }],
      },
    }),
  ],
  [
    "a lookalike of an image in a tool's input",
    (data) =>
      assistantTurn({
        type: "tool_use",
        id: "toolu_1",
        name: "f",
        input: { type: "image", source: { type: "base64", data } },
      }),
  ],
];
/** Fields that can carry text to OpenAI. */
const OPENAI: readonly Carrier[] = [
  [
    "tools outside the allowed ones",
    (text) => ({
      tools: [fn("a", "a"), fn("b", text)],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "a" }],
      },
    }),
  ],
  ["the context of reasoning", (context) => ({ reasoning: { context } })],
];

const BODIES_BY_PATH = {
  "/v1/messages": { model: "mock/claude", max_tokens: 64, messages: [HI] },
  "/v1/responses": { model: "mock/own", max_output_tokens: 64, input: "Hi" },
} as const;
const on = (path: keyof typeof BODIES_BY_PATH, carriers: readonly Carrier[]) =>
  carriers.map(([name, body]) => ({ name, path, body }));
const CARRIERS = [...on("/v1/messages", CLAUDE), ...on("/v1/responses", OPENAI)];

type StatusAndCharge = { readonly status: number; readonly charged: number };

async function statusAndCharge(
  key: string,
  env: Env,
  path: keyof typeof BODIES_BY_PATH,
  fields: Json,
): Promise<StatusAndCharge> {
  const headers = { "anthropic-beta": BETAS };
  const body = { ...BODIES_BY_PATH[path], ...fields };
  const response = await send(path, { key, body, headers, bindings: env });
  await response.text();
  return { status: response.status, charged: Number(response.headers.get("x-cost-micro") ?? 0) };
}

/** Returns the number of tokens in a provider's requests. */
const tokensIn = (calls: readonly UpstreamCall[]): number =>
  calls.reduce((sum, call) => sum + billed(call), 0);

describe("a balance of $0.04 at a provider that charges one token per four bytes", () => {
  it("covers all tokens of each request that reaches the provider, whichever field contains the text", async () => {
    const { key } = await openAccount({ credits: CREDITS });
    const { calls } = mockUpstream(answerTo);
    const env = upstreamBindings(BINDINGS);
    const pdf = { type: "base64", media_type: "application/pdf", data: btoa(pdfOf(100)) };
    const document = userTurn({ type: "document", source: pdf });
    expect((await statusAndCharge(key, env, "/v1/messages", document)).status).toBe(402);
    const file_data = PDF_DATA_URL_PREFIX + pdf.data;
    const file = [{ role: "user", content: [{ type: "input_file", file_data }] }];
    expect((await statusAndCharge(key, env, "/v1/responses", { input: file })).status).toBe(402);
    expect(calls).toEqual([]);
    let charged = 0;
    for (const characters of [400_000, 16_000]) {
      for (const { name, body, path } of CARRIERS) {
        const one = await statusAndCharge(key, env, path, body("word ".repeat(characters / 5)));
        expect([200, 402], name).toContain(one.status);
        charged += one.charged;
      }
    }
    const tokens = tokensIn(calls);
    expect(tokens).toBeLessThan(TOKENS);
    expect(tokens).toBeGreaterThan(TOKENS / 2); // calls continue while the balance lasts
    expect(charged).toBe(tokens * 2 + calls.length * 10);
    expect(await balanceOf(key)).toBe(CREDITS - charged);
  });

  it.each(CARRIERS)("covers all provider calls of a request with $name", async ({ body, path }) => {
    const { key } = await openAccount({ credits: CREDITS });
    const { calls } = mockUpstream(answerTo);
    await statusAndCharge(key, upstreamBindings(BINDINGS), path, body("word ".repeat(80_000)));
    expect(tokensIn(calls)).toBeLessThan(1000);
  });
});

const thinking = (budget_tokens: number) => ({
  ...BODIES_BY_PATH["/v1/messages"],
  max_tokens: 4096,
  thinking: { type: "enabled", budget_tokens },
});

describe("a budget for thinking tokens", () => {
  it("gets only the output that a low balance covers, or 402 if the balance covers none", async () => {
    const { calls } = mockUpstream(answerTo);
    const env = upstreamBindings(BINDINGS);
    const { key } = await openAccount({ credits: 30_000 }); // at most 3,000 of 4,096 output tokens
    expect((await statusAndCharge(key, env, "/v1/messages", thinking(2000))).status).toBe(200);
    expect(Number(calls[0]?.body["max_tokens"])).toBeGreaterThan(2000);
    expect(Number(calls[0]?.body["max_tokens"])).toBeLessThan(3000);
    const refused = await send("/v1/messages", { key, body: thinking(3500), bindings: env });
    expect(refused.status).toBe(402);
    expect(calls.length).toBe(1);
    const { error } = await refused.json<{ error: { details: { required_micro: number } } }>();
    expect(error.details.required_micro).toBeGreaterThan(3501 * 10);
    expect(error.details.required_micro).toBeLessThan(3501 * 10 + 1000);
  });
});
