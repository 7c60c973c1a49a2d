import { env } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { DONE, openAiEvent, TEXT_ANSWER, usageChunk } from "../fixtures/openai-replies.ts";
import { bindingsFor, PROVIDERS } from "../fixtures/provider-table.ts";
import { openOrganization } from "../fixtures/worker-app.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
});

const HOSTS = PROVIDERS.filter(({ name }) => name === "vllm");
const PATHS = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hi" }] },
  "/v1/messages": { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 },
  "/v1/responses": { input: "Hi" },
};

/** Returns a provider that has sent its headers, and sends its body when the test lets it. */
function slowProvider(): ReadableStreamDefaultController<Uint8Array> {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(streamController) {
      controller = streamController;
    },
  });
  const headers = { "content-type": "text/event-stream" };
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(body, { headers }));
  if (controller === undefined) throw new Error("the stream has not started");
  return controller;
}

async function send(path: string, body: object) {
  const response = await app.fetch(
    new Request(`https://eu.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test/chat", stream: true, ...body }),
    }),
    { ...env, ...bindingsFor(HOSTS), KEEP_ALIVE_MS: "20" },
    createExecutionContext(),
  );
  if (response.body === null) throw new Error("no body");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  return { response, reader };
}

async function rest(reader: ReadableStreamDefaultReader<string>): Promise<string> {
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
  }
}

describe.each(Object.entries(PATHS))("a provider's late first event at %s", (path, body) => {
  it("arrives even after the client has received the headers and a comment", async () => {
    const provider = slowProvider();
    const { response, reader } = await send(path, body);
    expect(response.status).toBe(200);
    expect((await reader.read()).value).toMatch(/^: keep-alive\n\n/);
    const answer = [...TEXT_ANSWER, usageChunk()].map(openAiEvent).join("") + DONE;
    provider.enqueue(new TextEncoder().encode(answer));
    provider.close();
    const text = await rest(reader);
    expect(text).toContain("Hel");
    expect(text).not.toContain('"error":{');
  });

  it("turns into an error event if the provider fails", async () => {
    const provider = slowProvider();
    const { reader } = await send(path, body);
    expect((await reader.read()).value).toMatch(/^: keep-alive\n\n/);
    provider.enqueue(
      new TextEncoder().encode(openAiEvent({ error: { code: 500, message: "no" } })),
    );
    provider.close();
    expect(await rest(reader)).toMatch(/"error":\s?\{|response\.failed/);
  });
});
