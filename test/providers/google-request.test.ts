import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { GOOGLE_CHAT, SIGNATURE } from "../fixtures/google-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import { GEMINI, MODEL, unsentFailure, sent } from "./google-kit.ts";

const user = (content: unknown) => ({ role: "user", content });
const toolCall = (id: string, name: string, args = "{}", more: object = {}) => ({
  id,
  type: "function",
  function: { name, arguments: args },
  ...more,
});

const called = (...calls: object[]) => ({ role: "assistant", content: null, tool_calls: calls });
const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const signed = (signature: unknown) => ({
  extra_content: { google: { thought_signature: signature } },
});

const config = async (body: JsonObject, model?: string, cap?: number) =>
  (await sent(body, { ...(model && { model }), ...(cap && { cap }) }))["generationConfig"];
const contents = async (messages: unknown[], model?: string) =>
  (await sent({ messages }, { ...(model && { model }) }))["contents"];

it("the Google adapter sends the output cap and only allowed fields", async () => {
  const body = {
    user: "someone",
    logit_bias: { 1: 2 },
    metadata: { a: "b" },
    store: false,
    temperature: 0.7,
    top_p: 0.9,
    n: 2,
    seed: 2 ** 32 + 5,
    presence_penalty: 0.5,
    frequency_penalty: 0,
    stop: ["a", "", "b"],
    verbosity: "low",
  };
  expect(await sent(body)).toEqual({
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    generationConfig: {
      maxOutputTokens: 256,
      temperature: 0.7,
      topP: 0.9,
      candidateCount: 2,
      presencePenalty: 0.5,
      stopSequences: ["a", "b"],
      seed: 5,
    },
  });
  expect(await config({ stop: "x" })).toEqual({ maxOutputTokens: 256, stopSequences: ["x"] });
});

it("the Google adapter puts model and method in the URL, and the key in a header", async () => {
  const whole = await answerTo(GEMINI, { upstreamId: MODEL }, GOOGLE_CHAT.text.json);
  const streamed = { upstreamId: "a/b?key=c", stream: true };
  const { requests } = await answerTo(GEMINI, streamed, GOOGLE_CHAT.text.stream);
  const models = "https://generativelanguage.googleapis.com/v1beta/models";
  expect(whole.requests[0]?.url).toBe(`${models}/${MODEL}:generateContent`);
  expect(requests[0]?.url).toBe(`${models}/a%2Fb%3Fkey%3Dc:streamGenerateContent?alt=sse`);
  expect(requests[0]?.headers.get("x-goog-api-key")).toBe("sk-canary-0123456789abcdefghij");
  expect(requests[0]?.headers.has("authorization")).toBe(false);
  expect(requests[0]?.init.redirect).toBe("manual");
});

it("the Google adapter separates leading instructions, keeps later instructions in place, and alternates roles", async () => {
  const messages = [
    { role: "system", content: "One." },
    { role: "developer", content: [{ type: "text", text: "Two." }] },
    user("Hi"),
    { role: "assistant", content: "Yes?" },
    { role: "system", content: "Three." },
    user([{ type: "text", text: "Now" }]),
  ];
  expect(await sent({ messages })).toMatchObject({
    systemInstruction: { parts: [{ text: "One." }, { text: "Two." }] },
    contents: [
      { role: "user", parts: [{ text: "Hi" }] },
      { role: "model", parts: [{ text: "Yes?" }] },
      { role: "user", parts: [{ text: "<system>Three.</system>" }, { text: "Now" }] },
    ],
  });
  const gemma = await sent({ messages }, { model: "gemma-4-26b-a4b-it" });
  expect(gemma).not.toHaveProperty("systemInstruction");
  expect(gemma).toHaveProperty(
    "contents.0.parts",
    ["One.", "Two.", "Hi"].map((text) => ({ text })),
  );
  const alone = await sent({ messages: messages.slice(0, 1) });
  expect(alone["contents"]).toEqual([{ role: "user", parts: [{ text: "One." }] }]);
  expect(alone).not.toHaveProperty("systemInstruction");
  const model = [messages[0], messages[3]];
  expect(await contents(model, "gemma-4")).toHaveProperty("0.parts", [{ text: "One." }]);
});

describe("a tool call with its result in a Google request", () => {
  const messages = [
    user("Hi"),
    called(toolCall("call_1", "f", '{"a":1}', signed(SIGNATURE)), toolCall("toolu_2", "g")),
    result("toolu_2", "second"),
    result("call_1", "first"),
  ];
  const first = { name: "f", args: { a: 1 } };

  it("matches its result by name and order, and keeps its signature", async () => {
    expect(await contents(messages)).toEqual([
      { role: "user", parts: [{ text: "Hi" }] },
      {
        role: "model",
        parts: [
          { functionCall: { id: "call_1", ...first }, thoughtSignature: SIGNATURE },
          { functionCall: { id: "toolu_2", name: "g", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "call_1", name: "f", response: { output: "first" } } },
          { functionResponse: { id: "toolu_2", name: "g", response: { output: "second" } } },
        ],
      },
    ]);
  });

  it("gets no ID before Gemini 3, and a signature only if the response had one", async () => {
    const text = JSON.stringify(await contents(messages, "gemini-2.5-flash"));
    expect(text).not.toContain('"id"');
    expect(text.indexOf("first")).toBeLessThan(text.indexOf("second"));
    expect(text).toContain(SIGNATURE);
    const [, turn] = (await contents(
      [user("Hi"), called(toolCall("x", "f"))],
      "gemini-2.5-pro",
    )) as { parts: object[] }[];
    expect(turn?.parts).toEqual([{ functionCall: { name: "f", args: {} } }]);
  });

  it.each(["gemini-3-flash-preview", "gemini-3.7-flash", "gemini-10-pro", "gemini-flash-latest"])(
    "contains Google's placeholder for %s if the first call of a message has no signature",
    async (model) => {
      const foreign = "fc_68a/b+c=|é";
      const turns = [
        user("Hi"),
        called(toolCall(foreign, "f", "", signed(7)), toolCall("b", "f")),
        result("b", "2"),
        result(foreign, "1"),
        called(toolCall("c", "f", "{}", { extra_content: { google: null } })),
        result("c", "3"),
      ];
      const parts = ((await contents(turns, model)) as { parts: JsonObject[] }[]).flatMap(
        (turn) => turn.parts,
      );
      expect(parts.map((part) => part["thoughtSignature"])).toEqual([
        undefined,
        "skip_thought_signature_validator",
        undefined,
        undefined,
        undefined,
        "skip_thought_signature_validator",
        undefined,
      ]);
      expect(parts[1]).toHaveProperty("functionCall.id", foreign);
      expect(parts[3]).toHaveProperty("functionResponse.id", foreign);
    },
  );

  it("contains no reasoning details from other providers", async () => {
    const reasoning_details = [{ type: "thinking", signature: "x" }];
    const assistant = { role: "assistant", content: "Hm", reasoning_details };
    expect(await contents([user("Hi"), assistant])).toHaveProperty("1.parts", [{ text: "Hm" }]);
  });
});

it.each([
  ["a result without a call", { messages: [user("Hi"), result("x", "1")] }, "messages"],
  ["legacy functions", { functions: [] }, "functions"],
  ["custom tools", { tools: [{ type: "custom", custom: { name: "f" } }] }, "tools[0]"],
])("the Google adapter rejects %s before sending", async (_name, body, param) => {
  expect(await unsentFailure(body)).toMatchObject({ kind: "refused", param });
});

const f = (more: object = {}) => ({ type: "function", function: { name: "f", ...more } });
const schema = { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: {} } };

it("the Google adapter keeps a tool's JSON schema", async () => {
  const tools = [f({ description: "Does f", parameters: schema }), f()];
  expect((await sent({ tools }))["tools"]).toEqual([
    {
      functionDeclarations: [
        { name: "f", description: "Does f", parametersJsonSchema: schema },
        { name: "f", parametersJsonSchema: { type: "object", properties: {} } },
      ],
    },
  ]);
  expect(await sent({ tools: [] })).not.toHaveProperty("toolConfig");
});

it.each([
  [undefined, { mode: "AUTO" }],
  ["auto", { mode: "AUTO" }],
  ["none", { mode: "NONE" }],
  ["required", { mode: "ANY" }],
  [f(), { mode: "ANY", allowedFunctionNames: ["f"] }],
])("the Google adapter maps tool_choice %j to %j", async (tool_choice, mode) => {
  const body = await sent({ tools: [f()], tool_choice });
  expect(body["toolConfig"]).toEqual({ functionCallingConfig: mode });
});

it("the Google adapter sends the mode VALIDATED for a strict tool without a tool_choice", async () => {
  const body = await sent({ tools: [f({ strict: true })] });
  expect(body).toHaveProperty("toolConfig.functionCallingConfig.mode", "VALIDATED");
});

it("the Google adapter maps response_format to a media type and a JSON schema", async () => {
  const json_schema = { name: "s", schema };
  const maxOutputTokens = 256;
  const responseMimeType = "application/json";
  expect(await config({ response_format: { type: "json_schema", json_schema } })).toEqual({
    maxOutputTokens,
    responseMimeType,
    responseJsonSchema: schema,
  });
  expect(await config({ response_format: { type: "json_object" } })).toEqual({
    maxOutputTokens,
    responseMimeType,
  });
  expect(await config({ response_format: { type: "text" } })).toEqual({ maxOutputTokens });
});
