import { expect, it } from "vitest";
import { cohere } from "../../src/models/providers/cohere.ts";
import {
  messageReply as answered,
  COHERE_CHAT,
  endEvent,
  jsonReply,
  START,
  streamReply,
} from "../fixtures/cohere-wire.ts";
import { answerTo, eventsOf, messageOf } from "./adapter-kit.ts";

const provider = cohere("https://api.cohere.com/v2", "key");
const PARIS = { name: "get_weather", arguments: '{"city":"Paris"}' };
const ROME = { name: "get_weather", arguments: '{"city":"Rome"}' };
const TIME = { name: "get_time", arguments: "{}" };
const SAID = {
  text: { content: "Hello, 世界!", tools: [], finish: "stop" },
  tool: { content: "Let me look.", tools: [PARIS], finish: "tool_calls" },
  tools: { content: "", tools: [PARIS, ROME, TIME], finish: "tool_calls" },
  schema: { content: '{"city":"Paris","days":3}', tools: [], finish: "stop" },
  reasoning: { content: "42", reasoning: "Let me think.", tools: [], finish: "stop" },
  length: { content: "Hel", tools: [], finish: "length" },
};
const USED = { input: 12, cacheRead: 0, cacheWrite: 0, output: 3, reasoning: 0 };

for (const name of Object.keys(SAID) as (keyof typeof SAID)[]) {
  const scenario = COHERE_CHAT[name];
  const used = name === "length" ? { ...USED, output: 256 } : USED;

  it(`the Cohere adapter returns one message as JSON and stream, with its billed units: ${name}`, async () => {
    const { answer } = await answerTo(provider, {}, scenario.json);
    if (answer.kind !== "json") throw new Error(JSON.stringify(answer));
    const [choice] = answer.body["choices"] as { message: Message; finish_reason: string }[];
    const tools = choice?.message.tool_calls ?? [];
    expect({
      content: choice?.message.content ?? "",
      ...("reasoning" in SAID[name] && { reasoning: choice?.message.reasoning_content }),
      tools: tools.map((call) => call.function),
      finish: choice?.finish_reason,
    }).toEqual(SAID[name]);
    expect(answer.usage).toEqual(used);
    const events = await eventsOf(provider, {}, scenario.stream);
    const streamed = messageOf(events);
    expect(streamed).toMatchObject({ ...SAID[name], usage: { kind: "usage", usage: used } });
    expect(streamed.tools.map((call) => call.id)).toEqual(tools.map((call) => call.id));
    expect(events.at(-1)).toEqual({ kind: "end" });
  });
}

type Message = {
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: object }[];
};
it("the Cohere adapter reads tool calls in an array like those in an object, and null arguments as none", async () => {
  const start =
    '{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"get_time","arguments":"null"}}]}}}';
  const events = await eventsOf(provider, {}, streamReply(START, start, endEvent("TOOL_CALL")));
  expect(messageOf(events)).toMatchObject({ tools: [{ id: "a", ...TIME }], finish: "tool_calls" });
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

it("the Cohere adapter treats a model error, or a 200 without output, as a failure", async () => {
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
