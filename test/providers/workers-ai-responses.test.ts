import { expect, it } from "vitest";
import { WorkersAiStream } from "../../src/models/protocols/workers-ai/answer.ts";
import {
  completionReply,
  cutStreamReply,
  jsonReply,
  openAiChunk,
  openAiEndEvents,
  ROLE,
  streamReply,
  usageEvent,
  WORKERS_AI_OPENAI_CHAT,
} from "../fixtures/workers-ai-replies.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf, messageOf, wholeMessageOf } from "./adapter-kit.ts";
import { WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

const PARIS = { name: "get_weather", arguments: '{"city":"Paris"}' };

const ROME = { name: "get_weather", arguments: '{"city":"Rome"}' };

async function jsonMessage(reply: RawReply) {
  return wholeMessageOf((await answerTo(provider, {}, reply)).answer);
}

const inBothForms = (text: string) =>
  `{"choices":[{"delta":{"content":"${text}"},"index":0}],"response":"${text}","tool_calls":[],"p":"abd"}`;

it("the Workers AI adapter returns an event only once if it contains both formats", async () => {
  const reply = streamReply(inBothForms("Hel"), inBothForms("lo"), usageEvent());
  expect(messageOf(await eventsOf(provider, {}, reply)).content).toBe("Hello");
});

const contentOf = async (response: string) =>
  (await jsonMessage(jsonReply(`{"response":${response}}`))).content;

it("the Workers AI adapter accepts a number or null as text in JSON mode", async () => {
  expect(await contentOf("42")).toBe("42");
  expect(await contentOf("null")).toBe("");
  expect(await contentOf("[1]")).toBe("[1]");
});

it("the Workers AI adapter reports a tool call as truncated if the output cap cut it off", async () => {
  const cutCall = { id: "a", function: { name: "get_weather", arguments: '{"city":"Pa' } };
  const choice = { index: 0, message: { tool_calls: [cutCall] }, finish_reason: "length" };
  const reply = jsonReply(JSON.stringify({ choices: [choice] }));
  expect(await jsonMessage(reply)).toMatchObject({
    tools: [cutCall.function],
    finish: "length",
  });
});

const bareCall = (city: string) =>
  `{"tool_calls":[{"name":"get_weather","arguments":{"city":"${city}"}}]}`;

it("the Workers AI adapter separates complete tool calls that have no index", async () => {
  const events = await eventsOf(
    provider,
    {},
    streamReply(bareCall("Paris"), bareCall("Rome"), usageEvent()),
  );
  expect(messageOf(events)).toMatchObject({ tools: [PARIS, ROME], finish: "tool_calls" });
});

it("the Workers AI adapter converts a JSON response that arrives instead of a stream to a one-chunk stream", async () => {
  for (const name of ["text", "tools", "reasoning", "length"] as const) {
    const { json } = WORKERS_AI_OPENAI_CHAT[name];
    const events = await eventsOf(provider, {}, json);
    expect(messageOf(events)).toEqual(await jsonMessage(json));
    expect(events.slice(-2)).toMatchObject([{ kind: "usage" }, { kind: "end" }]);
    expect(events[0]).toMatchObject({ chunk: { choices: [{ delta: { role: "assistant" } }] } });
  }
  const { answer } = await answerTo(provider, { stream: true }, jsonReply('{"success":true}'));
  expect(answer).toMatchObject({ kind: "failure", failure: { reason: "bad_answer" } });
});

it("the Workers AI adapter returns nothing more from a JSON response after the stream is canceled", async () => {
  const { json: reply } = WORKERS_AI_OPENAI_CHAT.text;
  const { answer } = await answerTo(provider, { stream: true }, reply);
  if (answer.kind !== "stream") throw new Error("no stream");
  answer.events.cancel();
  expect(await answer.events.next()).toBeNull();
});

const TOOLS = ["get_weather", "get_time"].map((name) => ({ type: "function", function: { name } }));

const leaked = (content: string, choice: unknown) => {
  const reply = completionReply(`"content":${JSON.stringify(content)},"tool_calls":null`, "stop");
  return answerTo(provider, { body: { tools: TOOLS, tool_choice: choice } }, reply);
};

it("the Workers AI adapter converts a forced tool call that the model writes as text to a tool call", async () => {
  const forced = { type: "function", function: { name: "get_weather" } };
  const words = [
    '{"name":"get_weather","arguments":{"city":"Paris"}}',
    '{"name":"get_weather","parameters":{"city":"Paris"}}',
    '[{"name":"get_weather","city":"Paris"}]',
    String.raw`{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}`,
  ];
  for (const choice of ["required", forced]) {
    for (const content of words) {
      const { answer } = await leaked(content, choice);
      expect(answer).toMatchObject({
        body: {
          choices: [
            {
              finish_reason: "tool_calls",
              message: { content: null, tool_calls: [{ function: PARIS }] },
            },
          ],
        },
      });
    }
  }
});

it("the Workers AI adapter returns text as text if no tool call was forced or no tool matches", async () => {
  const call = '{"name":"get_weather","arguments":{}}';
  const kept: [string, unknown][] = [
    [call, "auto"],
    [call, "none"],
    ['{"name":"analysis"}', "required"],
    [`[${call},{"name":"other"}]`, "required"],
    ["plain words", "required"],
  ];
  for (const [content, choice] of kept) {
    const { answer } = await leaked(content, choice);
    expect(answer).toMatchObject({ body: { choices: [{ message: { content } }] } });
    expect(JSON.stringify(answer)).not.toContain("tool_calls");
  }
});

it("the Workers AI adapter ignores the end of a tool call that never started", async () => {
  const closing = '{"tool_calls":[{"id":null,"type":null,"index":0,"function":{"name":null}}]}';
  const events = await eventsOf(
    provider,
    {},
    streamReply('{"response":"Hi"}', closing, usageEvent()),
  );
  expect(messageOf(events)).toMatchObject({ content: "Hi", tools: [], finish: "stop" });
});

const usage = (input: number, output: number, cacheRead = 0) => ({
  usage: { input, cacheRead, cacheWrite: 0, output, reasoning: 0 },
});

const text = (words: string, output = 1) => openAiChunk(`"content":"${words}"`, "null", output);

async function reports(...payloads: readonly string[]) {
  const events = await eventsOf(provider, {}, cutStreamReply(...payloads));
  return events.filter((event) => event.kind === "usage");
}

it("the Workers AI adapter returns the last event's usage as final, and the sum of the chunks' usage as partial", async () => {
  // The total exceeds the sum, as recorded. Only the last event is right, also about cached tokens.
  const seen = await reports(
    ROLE,
    text("Hel", 2),
    text("lo", 3),
    ...openAiEndEvents("stop", 9),
    "[DONE]",
  );
  const partial = { kind: "usage", partial: true };
  expect(seen).toEqual([
    { ...partial, ...usage(12, 2) },
    { ...partial, ...usage(12, 5) },
    { ...partial, ...usage(12, 5) },
    { ...partial, ...usage(12, 5) },
    { kind: "usage", ...usage(8, 9, 4) },
  ]);
});

const nativeText = (words: string, output: number) =>
  `{"response":"${words}","usage":{"prompt_tokens":12,"completion_tokens":${output}}}`;

it("the Workers AI adapter treats usage totals in chunks as partial until the stream ends", async () => {
  expect(await reports(nativeText("Hel", 1), nativeText("lo", 2), "[DONE]")).toEqual([
    { kind: "usage", partial: true, ...usage(12, 1) },
    { kind: "usage", partial: true, ...usage(12, 2) },
    { kind: "usage", ...usage(12, 2) },
  ]);
});

it("the Workers AI adapter never treats usage as final if text follows", async () => {
  const first = '{"response":"Hel","usage":{"prompt_tokens":12,"completion_tokens":1}}';
  const seen = await reports(first, '{"response":"lo"}', "[DONE]");
  expect(seen).toEqual([{ kind: "usage", partial: true, ...usage(12, 1) }]);
});

it("the Workers AI adapter ignores usage that consists of zeros, and reports no prompt tokens before any output", async () => {
  const zeros = '"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}';
  expect(await reports(`{"response":"Hi",${zeros}}`, `{"response":"",${zeros}}`, "[DONE]")).toEqual(
    [],
  );
  expect(await reports(ROLE)).toEqual([]);
  const { answer } = await answerTo(provider, {}, jsonReply(`{"response":"Hi",${zeros}}`));
  expect(answer).toMatchObject({ kind: "json", usage: null });
});

it("the Workers AI adapter ignores malformed and missing token counts", async () => {
  for (const odd of ['{"prompt_tokens":-1,"completion_tokens":2}', '{"prompt_tokens":1.5}', "7"]) {
    expect(await reports('{"response":"Hi"}', `{"response":"","usage":${odd}}`, "[DONE]")).toEqual(
      [],
    );
  }
});

it("the Workers AI adapter ends a stream at a finish reason even without [DONE], and emits no end event if both are missing", async () => {
  const finished = await eventsOf(
    provider,
    {},
    cutStreamReply(ROLE, text("Hel"), ...openAiEndEvents("stop")),
  );
  expect(finished.at(-1)).toEqual({ kind: "end" });
  const broken = await eventsOf(provider, {}, cutStreamReply('{"response":"Hel"}', usageEvent()));
  expect(broken.map((event) => event.kind)).toEqual(["chunk", "text", "usage"]);
});

const kindsOf = async (...payloads: readonly string[]) =>
  (await eventsOf(provider, {}, streamReply(...payloads))).map((event) => event.kind);

it("the Workers AI adapter fails for a stream without events, but not for empty output", async () => {
  expect(await kindsOf()).toEqual(["error"]);
  expect(await kindsOf('{"p":"abdefgh"}')).toEqual(["error"]);
  expect(await kindsOf(usageEvent(0))).toEqual(["chunk", "chunk", "usage", "end"]);
});

it("the Workers AI adapter ignores data after the end of a stream, and reports a model error as a failure", () => {
  const reader = new WorkersAiStream(9);
  const ends = [reader.read('{"response":"Hi"}', "message"), reader.read("[DONE]", "message")];
  expect(ends.flat().at(-1)).toEqual({ kind: "end" });
  expect(reader.read(usageEvent(), "message")).toEqual([]);
  const broken = new WorkersAiStream(9);
  const events = broken.read(openAiChunk('"content":"Hel"', '"error"'), "message");
  expect([...events, ...broken.endOfFile()].at(-1)).toMatchObject({
    kind: "error",
    failure: { kind: "retry" },
  });
});
