import { env } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { bindingsFor, PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
});

async function send(provider: ChatProvider, reply: RawReply, stream = false): Promise<Response> {
  mockNetwork(reply);
  const messages = [{ role: "user", content: "Hello" }];
  const options = stream ? { stream, stream_options: { include_usage: true } } : {};
  return app.fetch(
    new Request("https://eu.test/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test/chat", messages, max_tokens: 100, ...options }),
    }),
    { ...env, ...bindingsFor([provider]) },
    createExecutionContext(),
  );
}

type Chunk = {
  readonly choices: readonly { readonly delta: { readonly content?: string | null } }[];
  readonly usage?: { readonly cost_micro: number } | null;
};

/** Workers AI needs a binding instead of the network. */
const CASES = PROVIDERS.filter(({ id }) => id !== "workers-ai").map(
  (one) => [one.name, one] as const,
);

describe.each(CASES)("a response of the provider %s", (_, provider) => {
  it("becomes a stream with the same text and charge if the provider ignored the field 'stream'", async () => {
    const whole = await send(provider, provider.chat.text.json);
    const cost = Number(whole.headers.get("x-cost-micro"));
    expect(cost).toBeGreaterThan(0);
    await whole.text();
    vi.restoreAllMocks();
    const response = await send(provider, provider.chat.text.json, true);
    const text = await response.text();
    expect([response.status, text.includes('"error"')]).toEqual([200, false]);
    const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(
      ([, json = ""]) => JSON.parse(json) as Chunk,
    );
    const content = chunks.flatMap(({ choices }) => choices[0]?.delta.content ?? []).join("");
    expect(content).toBe("Hello, 世界!");
    expect(chunks.findLast(({ usage }) => usage)?.usage?.cost_micro).toBe(cost);
  });

  it("results in an estimated charge if the provider reports zero usage", async () => {
    const { body, ...reply } = provider.chat.text.json;
    const zero = String(body).replaceAll(/("\w*[tT]oken\w*":\s*)\d+/g, "$10");
    const response = await send(provider, { ...reply, body: zero });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("x-cost-micro"))).toBeGreaterThan(0);
    await response.text();
  });
});
