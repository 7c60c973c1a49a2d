import { env } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { app } from "../../src/app.ts";
import { bindingsFor, PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";

/** What each server returns to a request for several choices, as recorded; every choice has 30 tokens. */
type Server = {
  readonly profile: string;
  /** Returns the number of choices in the response. */
  readonly returned: (requested: number) => number;
  /** Returns the completion tokens that the server reports in JSON. */
  readonly reported: (requested: number) => number;
  readonly stream: (requested: number) => string;
};

const PROMPT = 34;
const EACH = 30;
const usageOf = (output: number) => ({
  prompt_tokens: PROMPT,
  completion_tokens: output,
  total_tokens: PROMPT + output,
});
const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" };
const chunk = (choices: readonly object[], output?: number): string => {
  const usage = output === undefined ? {} : { usage: usageOf(output) };
  return `data: ${JSON.stringify({ ...head, choices, ...usage })}\n\n`;
};
const textChunk = (index: number): string =>
  Array.from({ length: EACH }, (_, at) =>
    chunk([{ index, delta: { content: at === 0 ? "A" : " word" }, finish_reason: null }]),
  ).join("");
const finish = (index: number): string => chunk([{ index, delta: {}, finish_reason: "length" }]);
const DONE = "data: [DONE]\n\n";
const indexes = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const each = (count: number, write: (index: number) => string): string =>
  indexes(count).map(write).join("");
const identity = (requested: number): number => requested;

const SERVERS: Readonly<Record<string, Server>> = {
  // Interleaves the choices and reports the usage of all of them once.
  vLLM: {
    profile: "vllm",
    returned: identity,
    reported: (requested) => requested * EACH,
    stream: (requested) =>
      each(requested, textChunk) + each(requested, finish) + chunk([], requested * EACH) + DONE,
  },
  // Reports the usage of each choice when it finishes.
  "llama.cpp": {
    profile: "generic",
    returned: identity,
    reported: (requested) => requested * EACH,
    stream: (requested) =>
      each(requested, (index) => textChunk(index) + finish(index) + chunk([], EACH)) + DONE,
  },
  // Only its first choice gets a finish reason.
  LiteLLM: {
    profile: "generic",
    returned: identity,
    reported: (requested) => requested * EACH,
    stream: (requested) =>
      textChunk(0) +
      finish(0) +
      each(requested - 1, (index) => textChunk(index + 1)) +
      chunk([{ index: 0, delta: {} }], requested * EACH) +
      DONE,
  },
  // Ignores `n`, puts usage into the finish chunk and never sends the marker.
  "transformers serve": {
    profile: "generic",
    returned: () => 1,
    reported: () => EACH,
    stream: () => textChunk(0) + chunk([{ index: 0, delta: {}, finish_reason: "length" }], EACH),
  },
};

let key: string;
beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
});

async function chargeFor(profile: string, body: object, reply: { type: string; body: string }) {
  const vllm = PROVIDERS.find(({ name }) => name === "vllm") as ChatProvider;
  const host = { ...vllm, entry: { ...vllm.entry, profile } };
  mockNetwork({ headers: { "content-type": reply.type }, body: reply.body });
  const request = { model: "test/chat", max_tokens: 100, ...body };
  return app.fetch(
    new Request("https://eu.test/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "A story" }], ...request }),
    }),
    { ...env, ...bindingsFor([host]) },
    createExecutionContext(),
  );
}

/** The prices of the test's model: 1 and 2 micro-credits per token. */
const costOf = (output: number): number => PROMPT + 2 * output;

describe.each(Object.entries(SERVERS))("a request for several choices at %s", (_, server) => {
  it.each([1, 2, 8])(
    "pays for the usage that the server reports for %i choices in JSON",
    async (n) => {
      const choices = indexes(server.returned(n)).map((index) => ({
        index,
        message: { role: "assistant", content: "word ".repeat(EACH) },
        finish_reason: "length",
      }));
      const usage = usageOf(server.reported(n));
      const body = JSON.stringify({ ...head, object: "chat.completion", choices, usage });
      const response = await chargeFor(server.profile, { n }, { type: "application/json", body });
      expect(response.status).toBe(200);
      expect(response.headers.get("x-cost-micro")).toBe(String(costOf(server.reported(n))));
      await response.text();
    },
  );

  it.each([1, 2, 8])(
    "pays for the usage that the server reports for %i choices in a stream",
    async (n) => {
      const streamed = { n, stream: true, stream_options: { include_usage: true } };
      const reply = { type: "text/event-stream", body: server.stream(n) };
      const response = await chargeFor(server.profile, streamed, reply);
      const text = await response.text();
      expect(text).not.toContain('"error"');
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
      expect(text.match(/"finish_reason":"/g)).toHaveLength(server.returned(n));
      const cost = /"cost_micro":(\d+)/.exec(text)?.[1];
      expect(cost).toBe(String(costOf(server.reported(n))));
    },
  );
});

describe("a provider with the profile llamacpp", () => {
  it("rejects several choices with 400, because the server's JSON reports the usage of only one", async () => {
    const response = await chargeFor(
      "llamacpp",
      { n: 2 },
      { type: "application/json", body: "{}" },
    );
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("'n' must be 1");
  });
});
