import { expect, it } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { HOST_REPLIES } from "../fixtures/hosts-replies.ts";
import type { HostReplies } from "../fixtures/hosts-replies.ts";
import type { ChatScenarios } from "../fixtures/reply-scenarios.ts";
import {
  answerTo,
  eventsOf,
  expectSameHoweverCut,
  messageOf,
  wholeMessageOf,
} from "./adapter-kit.ts";

type Scenario = keyof ChatScenarios;
const SCENARIOS: readonly Scenario[] = [
  "text",
  "tool",
  "tools",
  "schema",
  "reasoning",
  "length",
  "refusal",
];
const CASES = HOST_REPLIES.flatMap((replies) =>
  SCENARIOS.map((name) => ({ replies, name, profile: replies.dialect.profile })),
);

function providerOf({ dialect }: HostReplies): Provider {
  const profile = PROVIDER_HOST_PROFILES.get(dialect.profile);
  if (profile === undefined) throw new Error(`no profile ${dialect.profile}`);
  return createOpenAiCompatibleProvider({
    id: dialect.profile,
    baseUrl: "https://host.test/v1",
    profile,
  });
}

/** Returns the message of the scenario, which is the same for every provider. */
function expectedMessage({ dialect }: HostReplies, name: Scenario) {
  const call = (index: number, tool: string, args: string) => {
    return { id: dialect.callId(index), name: tool, arguments: args, more: {} };
  };
  const paris = call(0, "get_weather", '{"city":"Paris"}');
  const calls = [paris, call(1, "get_weather", '{"city":"Rome"}'), call(2, "get_time", "{}")];
  const plain = { content: "", reasoning: "", tools: [] as unknown[], finish: "stop" };
  const byScenario: Readonly<Record<Scenario, object>> = {
    text: { content: "Hello, 世界!" },
    tool: { content: "Let me look.", tools: [paris], finish: "tool_calls" },
    tools: { content: "Let me look.", tools: calls, finish: "tool_calls" },
    schema: { content: '{"city":"Paris","days":3}' },
    reasoning: { content: "42", reasoning: "Let me think." },
    length: { content: "Hel", finish: "length" },
    refusal: { finish: "content_filter" },
  };
  return { ...plain, ...byScenario[name] };
}

function usageOf({ dialect }: HostReplies, name: Scenario) {
  const reasoning = name === "reasoning" && dialect.hidesReasoning !== true ? 2 : 0;
  return { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning };
}

it.each(CASES)(
  "the OpenAI-compatible adapter returns the same message from a stream and from JSON: $profile, $name",
  async ({ replies, name }) => {
    const want = expectedMessage(replies, name);
    const events = await eventsOf(providerOf(replies), {}, replies.chat[name].stream);
    expect(messageOf(events)).toMatchObject(want);
    expect(events.at(-1)).toEqual({ kind: "end" });
    const { answer } = await answerTo(providerOf(replies), {}, replies.chat[name].json);
    expect(wholeMessageOf(answer)).toMatchObject(want);
  },
);

it.each(CASES)(
  "the OpenAI-compatible adapter reports usage as five numbers, once, at the end: $profile, $name",
  async ({ replies, name }) => {
    const usage = usageOf(replies, name);
    const events = await eventsOf(providerOf(replies), {}, replies.chat[name].stream);
    expect(events.filter((event) => event.kind === "usage")).toEqual([{ kind: "usage", usage }]);
    const { answer } = await answerTo(providerOf(replies), {}, replies.chat[name].json);
    expect(answer).toMatchObject({ usage });
  },
);

it.each(HOST_REPLIES)(
  "the OpenAI-compatible adapter returns the same events however a stream is split: $dialect.profile",
  async (replies) => {
    expect.hasAssertions();
    for (const name of ["tools", "reasoning"] as const) {
      await expectSameHoweverCut(providerOf(replies), {}, replies.chat[name].stream);
    }
  },
);

it.each(HOST_REPLIES)(
  "the OpenAI-compatible adapter drops the provider's own fields: $dialect.profile",
  async (replies) => {
    const own =
      /obfuscation|filter_results|x_groq|queue_time|time_info|provider|native_|cost|num_sources|token_id|cache_hit|"p":|is_byok|seed/;
    for (const name of SCENARIOS) {
      const events = await eventsOf(providerOf(replies), {}, replies.chat[name].stream);
      expect(JSON.stringify(events)).not.toMatch(own);
      const { answer } = await answerTo(providerOf(replies), {}, replies.chat[name].json);
      expect(JSON.stringify(answer)).not.toMatch(own);
    }
  },
);

it.each(HOST_REPLIES)(
  "the OpenAI-compatible adapter orders chunks as OpenAI does: $dialect.profile",
  async (replies) => {
    const events = await eventsOf(providerOf(replies), {}, replies.chat.tools.stream);
    const chunks = events.flatMap((event) => (event.kind === "chunk" ? [event.chunk] : []));
    const deltas = chunks.flatMap((chunk) => chunk.choices.slice(0, 1));
    expect(deltas.map(({ delta }) => delta.role !== undefined).indexOf(true)).toBe(0);
    expect(deltas.filter(({ delta }) => delta.role !== undefined)).toHaveLength(1);
    expect(deltas.at(-1)).toMatchObject({ delta: {}, finish_reason: "tool_calls" });
    const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
    const firstDeltas = calls.filter((call) => call["id"] !== undefined);
    expect(firstDeltas.map((call) => [call["index"], call["type"]])).toEqual([
      [0, "function"],
      [1, "function"],
      [2, "function"],
    ]);
  },
);
