import { expect, it } from "vitest";
import { readChatCompletion } from "../../src/models/protocols/chat/answer.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";

const DEEP = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;

/** Provider fields besides the text that contain nested data. */
const NESTED_FIELDS: Readonly<Record<string, string>> = {
  "a function call": `"function_call":{"name":"f","arguments":"{}","more":${DEEP}}`,
  annotations: `"annotations":[{"type":"url_citation","url_citation":${DEEP}}]`,
  "a custom call": `"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","more":${DEEP}}}]`,
  "log probabilities alone": `"x":1`,
};

const whole = (message: string, logprobs = "null") =>
  JSON.parse(
    `{"choices":[{"index":0,"message":{"content":"Hi",${message}},"logprobs":${logprobs},"finish_reason":"stop"}]}`,
  ) as { [key: string]: unknown };
const streamed = (delta: string, logprobs = "null") =>
  new ChatChunkReader().read(
    `{"choices":[{"index":0,"delta":{"content":"Hi",${delta}},"logprobs":${logprobs},"finish_reason":null}]}`,
    "message",
  );

it.each(Object.entries(NESTED_FIELDS))(
  "a chat response omits %s nested too deep to write as JSON",
  (_, field) => {
    const logprobs = `{"content":${DEEP}}`;
    for (const read of [readChatCompletion(whole(field, logprobs)), streamed(field, logprobs)]) {
      const text = JSON.stringify(read);
      expect(text).toContain("Hi");
      expect(text).not.toContain("[[[[[");
    }
  },
);

it("a chat response keeps OpenAI's nested fields: annotations, function call, custom call and log probabilities", () => {
  const top = { token: "H", logprob: -0.1, bytes: [72] };
  const logprobs = { content: [{ ...top, top_logprobs: [top] }], refusal: null };
  const cited = { type: "url_citation", url_citation: { url: "https://a.test", title: "A" } };
  const called = { name: "f", arguments: "{}" };
  const custom = { id: "a", type: "custom", custom: { name: "f", input: "x" } };
  const message = {
    content: "Hi",
    annotations: [cited],
    function_call: called,
    tool_calls: [custom],
  };
  const answer = readChatCompletion({
    choices: [{ index: 0, message, logprobs, finish_reason: "stop" }],
  });
  expect(answer).toMatchObject({ body: { choices: [{ message, logprobs }] } });
  const chunk = chunkOf(message, null);
  const events = new ChatChunkReader().read(
    JSON.stringify({
      ...chunk,
      choices: [{ index: 0, delta: message, logprobs, finish_reason: null }],
    }),
    "message",
  );
  const { tool_calls: _calls, ...rest } = message;
  expect(events).toMatchObject([
    { chunk: { choices: [{ delta: rest, logprobs }] } },
    { chunk: { choices: [{ delta: { tool_calls: [{ index: 0, ...custom }] } }] } },
  ]);
});
