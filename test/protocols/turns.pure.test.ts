import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatCall, JsonObject } from "../../src/models/core/provider.ts";
import { toCompletion } from "../../src/models/core/output-part.ts";
import type { OutputPart } from "../../src/models/core/output-part.ts";
import { GENERIC_HOST_PROFILE, OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles.ts";
import * as chat from "../../src/models/protocols/chat/answer.ts";
import { toOpenAiChatRequest as plainRequest } from "../../src/models/protocols/chat/request.ts";
import type { HostProfile } from "../../src/models/protocols/chat/profile.ts";
import * as cohere from "../../src/models/protocols/cohere/answer.ts";
import { toCohereChatRequest as cohereRequest } from "../../src/models/protocols/cohere/request.ts";
import { readConverseResponse } from "../../src/models/protocols/converse/converse-answer.ts";
import { toConverseRequest } from "../../src/models/protocols/converse/converse-request.ts";
import * as gemini from "../../src/models/protocols/gemini/answer.ts";
import { toGeminiChatRequest as geminiRequest } from "../../src/models/protocols/gemini/request.ts";
import * as workersAi from "../../src/models/protocols/workers-ai/answer.ts";
import { toWorkersAiChatInputs } from "../../src/models/protocols/workers-ai/request.ts";
import { callOf } from "../providers/adapter-kit.ts";

/**
 * A protocol that only providers use: it writes requests and reads responses. The model's message
 * exists in both directions, because a response's output is sent back in the next request.
 */
type Turns = {
  readonly model: string;
  /** Returns the request of a call as JSON. */
  readonly write: (call: ChatCall) => unknown;
  /** Returns a response that contains only the model's message in a written request. */
  readonly answer: (written: JsonObject, call: ChatCall) => unknown;
  /** Other data that is sent back: extra content of calls, or signed thoughts. */
  readonly signs?: "calls" | "thoughts";
};

const assistant = ({ messages }: JsonObject): JsonObject =>
  (messages as JsonObject[]).find(({ role }) => role === "assistant") ?? {};
/** Parses a body that was written as JSON. */
const parsed = (body: unknown): unknown =>
  typeof body === "string" ? JSON.parse(body) : { "not text": body };
const ofChoice = (message: unknown): JsonObject => ({
  choices: [{ index: 0, message, finish_reason: "stop" }],
});
const openAi = (profile: HostProfile): Turns => ({
  model: "gpt-5",
  write: (call) => {
    const request = plainRequest(call, profile);
    return "body" in request ? request.body : request;
  },
  answer: (written) => chat.readChatCompletion(ofChoice(assistant(written))),
});

const PROTOCOLS: Readonly<Record<string, Turns>> = {
  "chat, as it is": openAi(OPENAI_HOST_PROFILE),
  "chat, simplified": openAi(GENERIC_HOST_PROFILE),
  cohere: {
    model: "command-a",
    write: cohereRequest,
    answer: (written) => {
      const { content, ...message } = assistant(written);
      // It is sent as text and returned in parts.
      const parts = content === undefined ? [] : [{ type: "text", text: content }];
      return cohere.readCohereChat({
        message: { ...message, content: parts },
        finish_reason: "COMPLETE",
      });
    },
  },
  converse: {
    model: "anthropic.claude-sonnet-4-6-v1:0",
    write: async (call) => parsed(await toConverseRequest(call)),
    answer: (written) =>
      readConverseResponse(
        { output: { message: assistant(written) }, stopReason: "end_turn" },
        null,
      ),
    signs: "thoughts",
  },
  gemini: {
    model: "gemini-3-pro",
    write: async (call) => parsed(await geminiRequest(call)),
    answer: ({ contents }) => {
      const content = (contents as JsonObject[]).find(({ role }) => role === "model");
      return gemini.readGeminiChat({ candidates: [{ index: 0, content, finishReason: "STOP" }] });
    },
    signs: "calls",
  },
  "workers-ai": {
    model: "@cf/openai/gpt-oss-120b",
    write: toWorkersAiChatInputs,
    answer: (written, call) => workersAi.readWorkersAiChat(ofChoice(assistant(written)), call),
  },
};

const words = fc.string({ minLength: 1 }).filter((text) => text.trim() !== "");
const signature = fc.stringMatching(/^[A-Za-z0-9+/]{8,40}$/);
const called = fc.record({
  id: fc.uuid(),
  name: fc.stringMatching(/^[a-z]{1,9}$/),
  input: fc.dictionary(words, fc.oneof(words, fc.integer(), fc.boolean())),
  sign: signature,
});

/** The possible output of a model in one message. */
const turns = ({ signs }: Turns): fc.Arbitrary<readonly OutputPart[]> =>
  fc
    .record({
      thought: fc.option(fc.record({ thinking: words, signature }), { nil: null }),
      text: fc.option(words, { nil: "" }),
      calls: fc.uniqueArray(called, { maxLength: 3, selector: ({ id }) => id }),
    })
    .filter(({ text, calls }) => text !== "" || calls.length > 0)
    .map(({ thought, text, calls }): OutputPart[] => {
      const parts: OutputPart[] = [];
      if (signs === "thoughts" && thought !== null) {
        parts.push({ kind: "thought", text: thought.thinking });
        parts.push({ kind: "detail", detail: { type: "anthropic.thinking", ...thought } });
      }
      if (text !== "") parts.push({ kind: "text", text });
      for (const { id, name, input, sign } of calls) {
        const more = { extra_content: { google: { thought_signature: sign } } };
        const call = { kind: "call" as const, id, name, arguments: JSON.stringify(input) };
        parts.push(signs === "calls" ? { ...call, more } : call);
      }
      parts.push({ kind: "finish", reason: "stop" });
      return parts;
    });

describe.each(Object.entries(PROTOCOLS))("the protocol %s", (_, protocol) => {
  it("restores the original assistant message from the text that the protocol wrote for it", async () => {
    await fc.assert(
      fc.asyncProperty(turns(protocol), async (outputs) => {
        const message = toCompletion([outputs], null).body.choices[0]?.message ?? {};
        const results = (message.tool_calls ?? []).map(({ id }) => {
          return { role: "tool", tool_call_id: id, content: "done" };
        });
        const messages = [
          { role: "user", content: "Hi" },
          message,
          ...results,
          { role: "user", content: "Go on" },
        ];
        const names = new Set((message.tool_calls ?? []).map((one) => one.function?.name));
        const tools = [...names].map((name) => ({ type: "function", function: { name } }));
        // Thoughts are only sent back if reasoning was requested.
        const options = protocol.signs === "thoughts" ? { reasoning_effort: "high" } : {};
        const body = { messages, ...options, ...(tools.length > 0 && { tools }) };
        const call = callOf({ upstreamId: protocol.model, cap: 20_000, body });
        const read = await protocol.answer((await protocol.write(call)) as JsonObject, call);
        expect(read).toMatchObject({ body: { choices: [{ message: outputOf(message) }] } });
      }),
    );
  });
});

/** Returns the part of a message that must be sent back. Absent and empty fields are equal. */
function outputOf({ content, tool_calls, reasoning_details }: JsonObject): JsonObject {
  return {
    ...((content ?? "") !== "" && { content }),
    ...(tool_calls !== undefined && { tool_calls }),
    ...(reasoning_details !== undefined && { reasoning_details }),
  };
}
