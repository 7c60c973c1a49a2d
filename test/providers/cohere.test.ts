import { expect, it } from "vitest";
import { createCohereProvider } from "../../src/models/providers/cohere.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import {
  listActiveProviders,
  buildProviders,
  findProviderProblems,
} from "../../src/models/providers/registry.ts";
import {
  COHERE_CHAT,
  COHERE_FAILURES,
  cutStreamReply,
  endEvent,
  failedEndEvent,
  jsonReply,
  messageReply as answered,
  START,
  streamReply,
} from "../fixtures/cohere-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, callOf, eventsOf, messageOf, mockNetwork } from "./adapter-kit.ts";

const provider = createCohereProvider("https://api.cohere.com/v2", "key");

it("the Cohere adapter reads tool calls from an array or an object, and treats null arguments as no arguments", async () => {
  const start =
    '{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"get_time","arguments":"null"}}]}}}';
  const events = await eventsOf(provider, {}, streamReply(START, start, endEvent("TOOL_CALL")));
  expect(messageOf(events)).toMatchObject({
    tools: [{ id: "a", name: "get_time", arguments: "{}" }],
    finish: "tool_calls",
  });
});

it("the Cohere adapter returns no usage without billed units, and ignores `tokens`", async () => {
  const usages = [
    '"usage":{"tokens":{"input_tokens":507,"output_tokens":10}}',
    '"usage":{"billed_units":{"input_tokens":1.5,"output_tokens":1}}',
    '"usage":{"billed_units":{"input_tokens":-1,"output_tokens":1}}',
    '"id":"x"',
  ];
  for (const usage of usages) {
    const body = `{"message":{"content":[{"type":"text","text":"Hi"}]},"finish_reason":"COMPLETE",${usage}}`;
    const { answer } = await answerTo(provider, {}, jsonReply(body));
    expect(answer).toMatchObject({ kind: "json", usage: null });
    const last = `{"type":"message-end","delta":{"finish_reason":"COMPLETE",${usage}}}`;
    const events = await eventsOf(provider, {}, streamReply(START, last));
    expect(events.map((event) => event.kind)).toEqual(["chunk", "chunk", "end"]);
  }
});

it("the Cohere adapter treats a model error and a 200 without output as failures", async () => {
  const replies = [
    answered('"content":[]', "ERROR"),
    answered('"content":[]', "TIMEOUT"),
    jsonReply('{"id":"x","message":"canary"}'),
    jsonReply('{"message":{"content":[]}}'),
    jsonReply("{}"),
  ];
  for (const reply of replies) {
    const { answer } = await answerTo(provider, {}, reply);
    expect(answer).toMatchObject({ kind: "failure", failure: { kind: "retry" } });
    expect(JSON.stringify(answer)).not.toContain("canary");
  }
});

const COHERE = createCohereProvider("https://api.cohere.com/v2", CANARY.key);

const MEANINGS: Readonly<Record<string, object>> = {
  "400": { kind: "refused" },
  "401": { kind: "disabled" },
  "403": { kind: "disabled" },
  "404": { kind: "disabled" },
  "422": { kind: "refused" },
  "429": { kind: "overloaded" },
  "498": { kind: "refused", code: "content_filter" },
  "499": { kind: "retry", again: false },
  "500": { kind: "retry", again: true },
  "501": { kind: "retry", again: true },
  "503": { kind: "overloaded" },
  "504": { kind: "retry", again: true },
};

for (const [status, reply] of Object.entries(COHERE_FAILURES.errors)) {
  it(`the Cohere adapter maps ${status} to the same failure for JSON and streams`, async () => {
    for (const stream of [true, false]) {
      const { answer } = await answerTo(COHERE, { stream }, reply);
      expect(answer).toMatchObject({
        kind: "failure",
        failure: { ...MEANINGS[status], reason: status },
      });
      for (const secret of [CANARY.key, CANARY.host, CANARY.account]) {
        expect(JSON.stringify(answer)).not.toContain(secret);
      }
    }
  });
}

it("the Cohere adapter maps a denied prompt to a rejection by a content filter, in JSON and streams", async () => {
  const { json, stream } = COHERE_CHAT.refusal;
  const expected = { failure: { kind: "refused", code: "content_filter" } };
  expect((await answerTo(COHERE, {}, json)).answer).toMatchObject(expected);
  expect((await answerTo(COHERE, { stream: true }, stream)).answer).toMatchObject(expected);
});

const kindsOf = async (reply: RawReply) => {
  const events = await eventsOf(COHERE, {}, reply);
  expect(JSON.stringify(events)).not.toContain("canary");
  return events.map((event) => event.kind);
};

const unnamed = (body: string) => ({ headers: { "content-type": "text/event-stream" }, body });

it("the Cohere adapter reports a failed stream once, without the provider's text", async () => {
  expect(await kindsOf(COHERE_FAILURES.errorFirst)).toEqual(["usage", "error"]);
  expect(await kindsOf(COHERE_FAILURES.errorMid)).toEqual(["chunk", "text", "usage", "error"]);
  expect(await kindsOf(COHERE_FAILURES.cut)).toEqual(["chunk", "text", "text"]);
  expect(await kindsOf(cutStreamReply(failedEndEvent("COMPLETE")))).toEqual(["usage", "error"]);
  expect(await kindsOf(cutStreamReply(failedEndEvent("TIMEOUT")))).toEqual(["usage", "error"]);
  expect(await kindsOf(unnamed('data: {"id":"x","message":"canary"}\n\n'))).toEqual(["error"]);
  expect(await kindsOf(unnamed("data: [DONE]\n\n"))).toEqual([]);
  expect(await kindsOf(unnamed("data: canary\n\n"))).toEqual(["error"]);
});

const vectors = (count: number, first = 0): RawReply => {
  const floats = Array.from({ length: count }, (_, at) => `[${first + at},0.5]`);
  return {
    headers: { "content-type": "application/json" },
    body: `{"id":"f5aa3e7b-f011-4c5c-a825-f94669f760e5","texts":[],"embeddings":{"float":[${floats.join()}]},"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":${count}}},"response_type":"embeddings_by_type"}`,
  };
};

const embed = (body: object) => ({
  kind: "embeddings" as const,
  upstreamId: "embed-v4.0",
  body: body as ReturnType<typeof callOf>["body"],
});

it("the Cohere adapter sends texts in batches of 96, merges them in order, and sums the billed units", async () => {
  const input = Array.from({ length: 200 }, (_, at) => `text ${at}`);
  const replies = [vectors(96), vectors(96, 96), vectors(8, 192)];
  const { answer, requests } = await answerTo(COHERE, embed({ input, dimensions: 256 }), replies);
  expect(requests.map((one) => (one.json["texts"] as string[]).length)).toEqual([96, 96, 8]);
  expect(requests[2]?.url).toBe("https://api.cohere.com/v2/embed");
  expect(requests[2]?.json).toEqual({
    model: "embed-v4.0",
    texts: input.slice(192),
    input_type: "search_document",
    embedding_types: ["float"],
    output_dimension: 256,
    truncate: "NONE",
  });
  if (answer.kind !== "json") throw new Error("no answer");
  expect(answer.usage).toMatchObject({ input: 200, output: 0 });
  const data = answer.body["data"] as number[][];
  expect(data.map(([value]) => value)).toEqual(input.map((_, at) => at));
});

const embedFor = (input_type: unknown) =>
  answerTo(COHERE, embed({ input: "a", input_type }), vectors(1));

it("the Cohere adapter forwards an embedding's input_type, and rejects an unknown input_type", async () => {
  expect((await embedFor("search_query")).requests[0]?.json).toMatchObject({
    input_type: "search_query",
  });
  const odd = await embedFor("image");
  expect(odd.answer).toMatchObject({ failure: { kind: "refused", param: "input_type" } });
});

it("the Cohere adapter treats a missing vector as a failure, and returns no usage if billed units are missing", async () => {
  const one = await answerTo(COHERE, embed({ input: ["a", "b"] }), vectors(1));
  expect(one.answer).toMatchObject({ failure: { reason: "bad_answer" } });
  const body = '{"embeddings":{"float":[[1]]}}';
  const reply = { headers: { "content-type": "application/json" }, body };
  const bare = await answerTo(COHERE, embed({ input: "a" }), reply);
  expect(bare.answer).toMatchObject({ kind: "json", usage: null });
});

const configOf = (more: object) => {
  const parsed = parseConfig({
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    REGION: "us",
    ...more,
  });
  if (!parsed.ok) throw new Error("bad configuration");
  return parsed.config;
};

it("the Cohere provider is available with its key, at Cohere's host or at a configured host", async () => {
  expect(listActiveProviders(configOf({}))).toEqual([]);
  const config = configOf({ COHERE_API_KEY: "k" });
  expect(listActiveProviders(config)).toEqual([{ id: "cohere", regions: ["global"] }]);
  const requests = mockNetwork(COHERE_CHAT.text.json);
  await buildProviders(config, COHERE).get("cohere")?.send(callOf());
  const other = configOf({ COHERE_API_KEY: "k", COHERE_BASE_URL: "https://proxy.example/v2/" });
  await buildProviders(other, COHERE).get("cohere")?.send(callOf());
  expect(requests.map((one) => one.url)).toEqual([
    "https://api.cohere.com/v2/chat",
    "https://proxy.example/v2/chat",
  ]);
  expect(findProviderProblems(configOf({ COHERE_BASE_URL: "ftp://x" }))).toMatchObject([
    { variable: "COHERE_BASE_URL" },
  ]);
});
