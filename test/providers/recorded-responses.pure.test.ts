import { describe, expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import { createCohereProvider } from "../../src/models/providers/cohere.ts";
import { ANTHROPIC_CHAT } from "../fixtures/anthropic-replies.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { COHERE_CHAT } from "../fixtures/cohere-replies.ts";
import { GOOGLE_CHAT, SIGNATURE } from "../fixtures/google-replies.ts";
import type { ChatScenarios } from "../fixtures/reply-scenarios.ts";
import { WORKERS_AI_CHAT, WORKERS_AI_OPENAI_CHAT } from "../fixtures/workers-ai-replies.ts";
import {
  answerTo,
  eventsOf,
  expectSameHoweverCut,
  messageOf,
  wholeMessageOf,
} from "./adapter-kit.ts";
import { BEDROCK, CLAUDE } from "./bedrock-kit.ts";
import { GEMINI, MODEL } from "./google-kit.ts";
import { WORKERS_AI_PROVIDER } from "./workers-ai-binding.ts";

type Scenario = keyof ChatScenarios;

const USED = { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 0 };
const BILLED = { ...USED, input: 12, cacheRead: 0 };
const usage = (used: object) => ({ usage: { kind: "usage", usage: used } });
const call = (name: string, args: object = {}, more: object = {}) => {
  return { name, arguments: args, more: JSON.stringify(more) };
};
const CALLS = [
  call("get_weather", { city: "Paris" }),
  call("get_weather", { city: "Rome" }),
  call("get_time"),
];
/** Returns the calls with IDs of the provider's own form. */
const callsWithId = (form: RegExp) =>
  CALLS.map((one) => ({ ...one, id: expect.stringMatching(form) as unknown }));
const THOUGHT = { type: "anthropic.thinking", thinking: "Let me think." };

/** The message of each scenario, which is the same for every provider. */
const MESSAGES: Readonly<Record<Scenario, object>> = {
  text: { content: "Hello, 世界!" },
  tool: { content: "Let me look.", tools: CALLS.slice(0, 1), finish: "tool_calls" },
  tools: { tools: CALLS, finish: "tool_calls" },
  schema: { content: '{"city":"Paris","days":3}' },
  reasoning: { content: "42", reasoning: "Let me think." },
  length: { content: "Hel", finish: "length" },
  refusal: { finish: "content_filter" },
};
const NOTHING = { content: "", reasoning: "", refusal: "", details: [], tools: [], finish: "stop" };

const SIGNED = { extra_content: { google: { thought_signature: SIGNATURE } } };
const schema = { type: "object", properties: { city: { type: "string" } } };
const cappedAt256 = { length: usage({ ...USED, output: 256 }) };

/** The recorded responses of a provider, and the parts of its messages that only it has. */
type Recording = {
  readonly provider: typeof GEMINI;
  readonly request?: {
    readonly upstreamId: string;
    readonly body?: Readonly<Record<string, unknown>>;
  };
  readonly chat: Partial<ChatScenarios>;
  readonly used?: object;
  readonly own?: Partial<Record<Scenario, object>>;
};

const { refusal: _, ...COHERE_ANSWERS } = COHERE_CHAT; // it refuses by a status
const RECORDINGS: Readonly<Record<string, Recording>> = {
  Anthropic: {
    provider: createAnthropicProvider({ baseUrl: "https://a.test/v1", secret: "k", geo: null }),
    request: { upstreamId: "claude-sonnet-5" },
    chat: ANTHROPIC_CHAT,
    own: {
      tools: { tools: callsWithId(/^toolu_01/) },
      reasoning: { details: [{ ...THOUGHT, signature: expect.stringMatching(/^EsEC.*=$/) }] },
      refusal: { refusal: expect.stringMatching(/^This request triggered restrictions/) },
    },
  },
  Bedrock: {
    provider: BEDROCK,
    request: {
      upstreamId: CLAUDE,
      body: { response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
    },
    chat: BEDROCK_CHAT,
    own: {
      tools: { tools: callsWithId(/^tooluse_\d_/) },
      reasoning: { details: [{ ...THOUGHT, signature: expect.stringMatching(/^EvYB.*==$/) }] },
    },
  },
  Gemini: {
    provider: GEMINI,
    request: { upstreamId: MODEL },
    chat: GOOGLE_CHAT,
    own: {
      tool: { tools: [call("get_weather", { city: "Paris" }, SIGNED)] },
      tools: {
        tools: [
          call("get_weather", { city: "Paris" }, SIGNED),
          call("get_weather", { city: "Rome" }),
          call("get_time"),
        ],
      },
      reasoning: usage({ ...USED, reasoning: 2 }),
      refusal: usage({ ...USED, input: 9, cacheRead: 0, output: 0 }),
    },
  },
  Cohere: {
    provider: createCohereProvider("https://api.cohere.com/v2", "key"),
    chat: COHERE_ANSWERS,
    used: BILLED,
    own: {
      tools: { tools: callsWithId(/^get_\w+_\w{12}$/) },
      length: usage({ ...BILLED, output: 256 }),
    },
  },
  "Workers AI's own form": {
    provider: WORKERS_AI_PROVIDER,
    chat: WORKERS_AI_CHAT,
    own: cappedAt256,
  },
  "Workers AI, OpenAI's form": {
    provider: WORKERS_AI_PROVIDER,
    chat: WORKERS_AI_OPENAI_CHAT,
    own: cappedAt256,
  },
};

type Tool = { readonly arguments: string; readonly more: object };

/** Parses the arguments of a message's calls, and formats their other fields to compare them all. */
function readable(message: { readonly tools: readonly Tool[] }) {
  const tools = message.tools.map(({ arguments: args, more, ...tool }) =>
    Object.assign(tool, { arguments: JSON.parse(args) as unknown, more: JSON.stringify(more) }),
  );
  return { ...message, tools };
}

describe.each(Object.entries(RECORDINGS))(
  "the recorded response of %s",
  (__, { provider, request = {}, chat, used = USED, own = {} }) => {
    const scenarios = Object.entries(chat) as [Scenario, ChatScenarios[Scenario]][];

    it.each(scenarios)(
      "becomes the same message as JSON and as a stream: %s",
      async (name, { json, stream }) => {
        const expected = { ...NOTHING, ...usage(used), ...MESSAGES[name], ...own[name] };
        const { answer } = await answerTo(provider, request, json);
        expect(readable(wholeMessageOf(answer))).toMatchObject(expected);
        const events = await eventsOf(provider, request, stream);
        expect(readable(messageOf(events))).toMatchObject(expected);
        expect(events.at(-1)).toEqual({ kind: "end" });
      },
    );

    it.each(scenarios)(
      "becomes the same events however the stream is split: %s",
      async (___, { stream }) => {
        await expect(expectSameHoweverCut(provider, request, stream)).resolves.toBeUndefined();
      },
    );
  },
);
