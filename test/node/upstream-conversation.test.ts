import OpenAI from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { MockRequest } from "../fixtures/openai-mock.ts";
import { scripted, startUpstreamWorld } from "./support/upstream-world.ts";
import type { World } from "./support/upstream-world.ts";

const TOOLS: ChatCompletionTool[] = [
  { type: "function", function: { name: "weather", parameters: { type: "object" } } },
];
/** The first upstream is well until a test says otherwise. */
const first = { isDown: false };

let world: World;
beforeAll(async () => {
  world = await startUpstreamWorld({
    models: { moving: ["first", "other"] },
    scripts: {
      first: (_, response) => {
        if (!first.isDown) return false;
        response.writeHead(500).end("{}");
        return true;
      },
      other: scripted((response) => {
        const choice = { index: 0, message: { role: "assistant", content: "Mild." } };
        const usage = { prompt_tokens: 30, completion_tokens: 2, total_tokens: 32 };
        const choices = [{ ...choice, finish_reason: "stop" }];
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ object: "chat.completion", choices, usage }));
      }),
    },
  });
});
afterAll(() => world.stop());

const sentTo = (requests: readonly MockRequest[]) => requests.at(-1)?.json["messages"];

it.each([false, true])(
  "a conversation with a tool call continues at another provider with the same IDs, streamed call %s",
  async (streamed) => {
    first.isDown = false;
    const { key } = await world.organization();
    const client = new OpenAI({ apiKey: key, baseURL: world.eu.baseUrl, maxRetries: 0 });
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "Oslo today?" }];
    const asking = { model: "moving", messages, tools: TOOLS };
    const called = streamed
      ? await client.chat.completions.stream(asking).finalChatCompletion()
      : await client.chat.completions.create(asking);
    const turn = called.choices[0]?.message;
    if (turn === undefined) throw new Error("no answer");
    expect(turn.tool_calls).toMatchObject([{ id: "call_mock", function: { name: "weather" } }]);
    first.isDown = true;
    messages.push(turn, { role: "tool", tool_call_id: "call_mock", content: "9 degrees" });
    const { data, response } = await client.chat.completions.create(asking).withResponse();
    expect(response.headers.get("x-route")).toBe("other:other");
    expect(data.choices[0]?.message.content).toBe("Mild.");
    expect(sentTo(world.other.requests)).toEqual(sentTo(world.mock.requests));
    expect(sentTo(world.other.requests)).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        tool_calls: [
          { id: "call_mock", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_mock", content: "9 degrees" },
    ]);
  },
);
