import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseChatRequest } from "../../src/models/core/core-request.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { HostProfile } from "../../src/models/protocols/chat/profile.ts";
import { toOpenAiChatRequest } from "../../src/models/protocols/chat/request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { callOf } from "./adapter-kit.ts";
import { effortFor } from "../effort.ts";

const text = fc.string({ maxLength: 12 });
const word = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/);
const id = fc.oneof(word, fc.constantFrom("call_1", "abcdefGH1", "toolu_01"));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const textPart = fc.record({ type: fc.constant("text"), text, cache_control: maybe(fc.object()) });
const imagePart = fc.record({
  type: fc.constant("image_url"),
  image_url: fc.record({ url: word, detail: maybe(fc.constantFrom("auto", "low", null)) }),
});

const refusalPart = fc.record({ type: fc.constant("refusal"), refusal: text });
const some = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: 1, maxLength: 3 });
const texts = fc.oneof(text, some(textPart));
/** Content that other providers reject is rare, so that most requests are converted. */
const mostly = <T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
  fc.oneof({ weight: 15, arbitrary: usual }, { weight: 1, arbitrary: odd });
const seldom = <T>(value: fc.Arbitrary<T>) => mostly(fc.constant(undefined), value);
const toolCall = mostly(
  fc.record({
    id,
    type: fc.constant("function"),
    function: fc.record({ name: word, arguments: fc.oneof(text, fc.json()) }),
    extra_content: maybe(fc.object()),
  }),
  fc.record({
    id,
    type: fc.constant("custom"),
    custom: fc.record({ name: word, input: text }),
  }),
);
const message = mostly(
  fc.oneof(
    fc.record({ role: fc.constantFrom("developer", "system"), content: texts, name: maybe(word) }),
    fc.record({
      role: fc.constant("user"),
      content: fc.oneof(text, some(fc.oneof(textPart, imagePart))),
      name: maybe(word),
      vendor: maybe(fc.anything()),
    }),
    fc.record({
      role: fc.constant("assistant"),
      content: fc.option(fc.oneof(text, some(fc.oneof(textPart, refusalPart)))),
      refusal: fc.option(text),
      reasoning_content: fc.option(text),
      reasoning_details: maybe(fc.array(fc.record({ type: word, data: text }))),
      tool_calls: maybe(some(toolCall)),
      function_call: seldom(fc.record({ name: word, arguments: text })),
    }),
    fc.record({ role: fc.constant("tool"), content: texts, tool_call_id: id }),
  ),
  fc.record({ role: fc.constant("function"), content: fc.option(text), name: word }),
);
const tool = mostly(
  fc.record({
    type: fc.constant("function"),
    function: fc.record({
      name: word,
      description: fc.option(text),
      parameters: fc.option(fc.object()),
      strict: fc.option(fc.boolean()),
      vendor: maybe(fc.anything()),
    }),
  }),
  fc.record({ type: fc.constant("custom"), custom: fc.record({ name: word }) }),
);
const choice = fc.oneof(
  fc.constantFrom("none", "auto", "required"),
  fc.record({
    type: fc.constantFrom("function", "custom", "allowed_tools"),
    function: maybe(fc.record({ name: word })),
    allowed_tools: maybe(fc.object()),
  }),
);
const rare = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 });
const body = fc.tuple(
  fc.dictionary(
    fc.oneof(word, fc.constantFrom("__proto__", "kind", "body", "reason")),
    fc.anything(),
    {
      maxKeys: 3,
    },
  ),
  fc.record({
    model: fc.constant("m"),
    messages: fc.array(message, { minLength: 1, maxLength: 6 }),
    tools: rare(fc.array(tool, { maxLength: 3 })),
    tool_choice: rare(choice),
    functions: seldom(fc.array(fc.object())),
    n: mostly(fc.constant(1), fc.constant(2)),
    temperature: rare(fc.double({ min: 0, max: 2, noNaN: true })),
    stop: rare(fc.oneof(text, some(text))),
    seed: rare(fc.integer()),
    logprobs: rare(fc.boolean()),
    reasoning_effort: rare(
      fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    ),
    verbosity: rare(fc.constantFrom("low", "high")),
    response_format: rare(fc.constant({ type: "json_object" })),
    user: rare(word),
    prompt_cache_key: rare(text),
    top_k: rare(fc.integer()),
    top_a: rare(fc.anything()),
  }),
);

/** A model for each pattern in the rules. */
const MODELS = [
  "gpt-5.4",
  "gpt-4o",
  "o3",
  "grok-4.6",
  "mistral-small-2603",
  "openai/gpt-oss-120b",
  "deepseek-v4-pro",
  "zai-glm-4.7",
  "llama-3.3",
];
const MESSAGE_KEYS: ReadonlySet<string> = new Set([
  "role",
  "content",
  "name",
  "refusal",
  "tool_call_id",
  "tool_calls",
  "function_call",
  "reasoning",
  "reasoning_content",
  "reasoning_details",
]);

function mayBeSent(profile: HostProfile): ReadonlySet<string> {
  const patches = (profile.rules ?? []).flatMap(({ values = {} }) =>
    Object.values(values).flatMap((value) => (value instanceof Object ? Object.keys(value) : [])),
  );
  return new Set([
    ...[...profile.chatFields].map((field) => profile.nameByField?.[field] ?? field),
    ...Object.keys(profile.chatExtras ?? {}),
    ...patches,
    "model",
    profile.capField,
    "stream",
    ...(profile.streamOptions === null ? [] : ["stream_options"]),
  ]);
}

const HOSTS = [...PROVIDER_HOST_PROFILES].map(([name, profile]) => {
  return { name, profile, allowed: mayBeSent(profile), converted: 0 };
});

it("the OpenAI-compatible adapter either converts or rejects any valid request, and sends only allowed fields", () => {
  fc.assert(
    fc.property(
      body,
      fc.constantFrom(...MODELS),
      fc.boolean(),
      ([junk, raw], upstreamId, stream) => {
        const parsed = parseChatRequest({ ...junk, ...raw });
        fc.pre(parsed.ok);
        if (!parsed.ok) return;
        const call = callOf({ upstreamId, stream, body: parsed.value });
        for (const host of HOSTS) {
          const request = toOpenAiChatRequest(call, host.profile);
          if (!("body" in request)) continue;
          host.converted++;
          expectAllowed(JSON.parse(JSON.stringify(request.body)) as JsonObject, host);
          const { model, [host.profile.capField]: cap } = request.body;
          expect([model, cap], host.name).toEqual([upstreamId, 256]);
        }
      },
    ),
    { numRuns: effortFor(150, 3000) },
  );
  for (const { name, converted } of HOSTS) {
    expect(converted > 50 || ["jina", "voyage"].includes(name), name).toBe(true);
  }
});

/** Checks that a host's request contains only fields that the host may get. */
function expectAllowed(sent: JsonObject, { name, profile, allowed }: (typeof HOSTS)[number]): void {
  const turns = sent["messages"] as JsonObject[];
  const unexpectedKeys = [
    ...Object.keys(sent).filter((key) => !allowed.has(key)),
    ...turns.flatMap((turn) => Object.keys(turn).filter((key) => !MESSAGE_KEYS.has(key))),
  ];
  expect(unexpectedKeys, name).toEqual([]);
  const written = JSON.stringify(sent);
  expect(written, name).not.toMatch(/"(?:vendor|cache_control)":/);
  const mayHaveExtra = profile.returnedFields?.includes("extra_content") === true;
  expect(mayHaveExtra || !written.includes('"extra_content":'), name).toBe(true);
}
