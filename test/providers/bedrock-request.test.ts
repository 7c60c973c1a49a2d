import { expect, it, vi } from "vitest";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import { BEDROCK, CLAUDE, HAIKU, NOVA, unsentFailure, sent } from "./bedrock-kit.ts";

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const called = (...ids: string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({
    id,
    type: "function",
    function: { name: "get_weather", arguments: '{"city":"Paris"}' },
  })),
});

const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const image = (url: string) => ({ type: "image_url", image_url: { url } });
const TOOLS = [{ type: "function", function: { name: "get_weather", description: "Weather." } }];
const messages = async (conversation: object[], model?: string, more: object = {}) =>
  (await sent({ messages: conversation, ...more }, model))["messages"];

it("the Bedrock adapter sends only known fields of a request, and always an output cap", async () => {
  const body = {
    user: "someone",
    logit_bias: { 1: 2 },
    metadata: { a: "b" },
    store: false,
    seed: 7,
    temperature: 1.7,
    top_p: 0.9,
    stop: ["a", " ", "b"],
    presence_penalty: 1,
    verbosity: "low",
    service_tier: "auto",
    parallel_tool_calls: false,
  };
  expect(await sent(body)).toEqual({
    messages: [{ role: "user", content: [{ text: "Hi" }] }],
    inferenceConfig: { maxTokens: 256, temperature: 1, topP: 0.9, stopSequences: ["a", "b"] },
  });
  expect((await sent({ stop: "x" }))["inferenceConfig"]).toEqual({
    maxTokens: 256,
    stopSequences: ["x"],
  });
});

it("the Bedrock adapter puts the encoded model and the operation in the URL, and the key in a header", async () => {
  const { requests } = await answerTo(BEDROCK, { upstreamId: HAIKU }, BEDROCK_CHAT.text.json);
  const host = "https://bedrock-runtime.eu-central-1.amazonaws.com";
  const model = "eu.anthropic.claude-haiku-4-5-20251001-v1%3A0";
  expect(requests[0]?.url).toBe(`${host}/model/${model}/converse`);
  expect(requests[0]?.headers.get("authorization")).toBe("Bearer sk-canary-0123456789abcdefghij");
  expect(requests[0]?.init.redirect).toBe("manual");
  vi.restoreAllMocks();
  const streamed = { upstreamId: HAIKU, stream: true };
  const other = await answerTo(BEDROCK, streamed, BEDROCK_CHAT.text.stream);
  expect(other.requests[0]?.url).toBe(`${host}/model/${model}/converse-stream`);
  expect(other.requests[0]?.headers.get("accept")).toBe("application/vnd.amazon.eventstream");
});

it.each([
  "global.anthropic.claude-sonnet-5",
  "us.amazon.nova-pro-v1:0",
  "apac.amazon.nova-pro-v1:0",
])("the Bedrock adapter rejects the model %s, which may leave the region", async (model) => {
  expect(await unsentFailure({}, model)).toEqual({ kind: "disabled", reason: "residency" });
});

it("the Bedrock adapter rejects an ARN, because its region is unknown", async () => {
  const arn = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc";
  expect(await unsentFailure({}, arn)).toMatchObject({ kind: "disabled" });
});

it("the Bedrock adapter separates instructions, alternates roles, and starts with the user", async () => {
  const conversation = [
    { role: "system", content: "One." },
    { role: "developer", content: "Two." },
    assistant("Hello! "),
    assistant("Yes?"),
    { role: "system", content: "Three." },
    user([{ type: "text", text: "Now" }]),
  ];
  expect(await sent({ messages: conversation })).toMatchObject({
    system: [{ text: "One." }, { text: "Two." }],
    messages: [
      { role: "user", content: [{ text: "Hello." }] },
      { role: "assistant", content: [{ text: "Hello! " }, { text: "Yes?" }] },
      { role: "user", content: [{ text: "<system>Three.</system>" }, { text: "Now" }] },
    ],
  });
});

it("the Bedrock adapter sends instructions as a user message if there are no other messages", async () => {
  const body = await sent({ messages: [{ role: "system", content: "Greet." }] });
  expect(body["messages"]).toEqual([{ role: "user", content: [{ text: "Greet." }] }]);
  expect(body["system"]).toBeUndefined();
  expect(await unsentFailure({ messages: [user("  ")] })).toMatchObject({ kind: "refused" });
});

it("the Bedrock adapter omits blank texts, and trims white space at the end of a final assistant message", async () => {
  const conversation = [user("Hi"), assistant(" \n"), user("there"), assistant("I am \n")];
  expect(await messages(conversation)).toEqual([
    { role: "user", content: [{ text: "Hi" }, { text: "there" }] },
    { role: "assistant", content: [{ text: "I am" }] },
  ]);
});

it("the Bedrock adapter converts tool calls and results to blocks with valid, matching IDs", async () => {
  const conversation = [
    user("Weather?"),
    called("call/1:x", "tooluse_ok"),
    result("tooluse_ok", " "),
    result("call/1:x", "22C"),
    user("And?"),
  ];
  const [, call, answer] = (await messages(conversation, NOVA, { tools: TOOLS })) as JsonObject[];
  const blocks = (call?.["content"] ?? []) as { toolUse: { toolUseId: string } }[];
  const ids = blocks.map(({ toolUse }) => toolUse.toolUseId);
  expect(ids).toEqual([expect.stringMatching(/^[A-Za-z0-9]{24}$/), "tooluse_ok"]);
  expect(answer?.["content"]).toEqual([
    { toolResult: { toolUseId: "tooluse_ok", content: [{ text: "(empty)" }] } },
    { toolResult: { toolUseId: ids[0], content: [{ text: "22C" }] } },
    { text: "And?" },
  ]);
});

it.each([{}, { tools: TOOLS, tool_choice: "none" }])(
  "the Bedrock adapter converts earlier tool calls to text if no tool is in use: %j",
  async (more) => {
    const conversation = [user("Weather?"), called("a"), result("a", "22C")];
    const body = await sent({ messages: conversation, ...more });
    expect(body["toolConfig"]).toBeUndefined();
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ text: "Weather?" }] },
      {
        role: "assistant",
        content: [{ text: '<tool_call name="get_weather">{"city":"Paris"}</tool_call>' }],
      },
      {
        role: "user",
        content: [{ text: '<tool_result name="get_weather">22C</tool_result>' }],
      },
    ]);
  },
);

it("the Bedrock adapter sends inline images unchanged, and downloads other images", async () => {
  const data = user([image("data:image/jpg;base64,AAAA")]);
  expect(await messages([data])).toEqual([
    { role: "user", content: [{ image: { format: "jpeg", source: { bytes: "AAAA" } } }] },
  ]);
  vi.restoreAllMocks();
  const png = { headers: { "content-type": "image/png" }, body: Uint8Array.of(1, 2, 3) };
  const body = { messages: [user([image("https://images.example.com/a.png")])] };
  const replies = [png, BEDROCK_CHAT.text.json];
  const { requests } = await answerTo(BEDROCK, { upstreamId: CLAUDE, body }, replies);
  expect(requests[1]?.json["messages"]).toEqual([
    { role: "user", content: [{ image: { format: "png", source: { bytes: "AQID" } } }] },
  ]);
});

it("the Bedrock adapter rejects several choices and legacy functions", async () => {
  expect(await unsentFailure({ n: 2 })).toMatchObject({ kind: "refused", param: "n" });
  expect(await unsentFailure({ functions: [] })).toMatchObject({ param: "functions" });
});

it("the Bedrock adapter sets one cache point: for Claude after the last user text, for Nova after the instructions", async () => {
  const conversation = [{ role: "system", content: "Be brief." }, user("Hi"), assistant("I")];
  const body = { messages: conversation, prompt_cache_key: "k" };
  const point = { cachePoint: { type: "default" } };
  expect(await sent(body, CLAUDE)).toMatchObject({
    system: [{ text: "Be brief." }],
    messages: [{ content: [{ text: "Hi" }, point] }, { content: [{ text: "I" }] }],
  });
  vi.restoreAllMocks();
  expect(await sent(body)).toMatchObject({ system: [{ text: "Be brief." }, point] });
  vi.restoreAllMocks();
  expect(JSON.stringify(await sent(body, "meta.llama4-v1:0"))).not.toContain("cachePoint");
  vi.restoreAllMocks();
  expect(JSON.stringify(await sent({ messages: conversation }, CLAUDE))).not.toContain(
    "cachePoint",
  );
});
