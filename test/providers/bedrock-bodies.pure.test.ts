import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseChatRequest } from "../../src/models/core/core-request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { effortFor } from "../effort.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import { BEDROCK, CLAUDE, HAIKU, NOVA } from "./bedrock-kit.ts";

const text = fc.oneof(fc.constantFrom("", " ", "\n", "Hi"), fc.string({ maxLength: 12 }));
const id = fc.oneof(fc.constantFrom("a", "call/1"), fc.string({ minLength: 1, maxLength: 80 }));
const name = fc.constantFrom("f", "get_weather", "json");
const texts = fc.oneof(
  text,
  fc.array(fc.record({ type: fc.constant("text"), text }), { minLength: 1, maxLength: 3 }),
);
const image = fc.record({
  type: fc.constant("image_url"),
  image_url: fc.record({ url: fc.constantFrom("data:image/png;base64,AA==", "data:x", "ftp://a") }),
});

const part = fc.oneof(fc.record({ type: fc.constant("text"), text }), image);
const call = fc.record({
  id,
  type: fc.constant("function"),
  function: fc.record({
    name: fc.oneof(name, fc.string({ minLength: 1 })),
    arguments: fc.oneof(fc.constantFrom("", "{}", "[1]", "{", "null"), fc.json()),
  }),
});

const detail = fc.oneof(
  fc.record({ type: fc.constant("anthropic.thinking"), thinking: text, signature: text }),
  fc.record({ type: fc.string({ minLength: 1 }), thinking: fc.jsonValue() }),
);
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer"), content: texts }),
  fc.record({
    role: fc.constant("user"),
    content: fc.oneof(text, fc.array(part, { minLength: 1, maxLength: 3 })),
  }),
  fc.record(
    {
      role: fc.constant("assistant"),
      content: fc.option(texts),
      refusal: fc.option(text),
      reasoning_details: fc.array(detail, { maxLength: 2 }),
      tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ["role"] },
  ),
  fc.record({ role: fc.constant("tool"), tool_call_id: id, content: texts }),
);
const schema = fc.oneof(
  fc.constantFrom({}, { type: "object" }, { type: ["array", "null"] }),
  fc.dictionary(fc.string(), fc.jsonValue()),
);
const tool = fc.record({
  type: fc.constant("function"),
  function: fc.record({ name, parameters: schema }, { requiredKeys: ["name"] }),
});

const choice = fc.oneof(
  fc.constantFrom("none", "auto", "required"),
  fc.record({ type: fc.constant("function"), function: fc.option(fc.record({ name })) }),
  fc.record({
    type: fc.constant("allowed_tools"),
    mode: fc.constant("required"),
    tools: fc.array(tool),
  }),
);
const format = fc.oneof(
  fc.constantFrom({ type: "text" }, { type: "json_object" }),
  fc.record({ type: fc.constant("json_schema"), json_schema: fc.record({ name, schema }) }),
);
const body = fc.record(
  {
    model: fc.constant("bedrock/any"),
    messages: fc.array(message, { minLength: 1, maxLength: 8 }),
    tools: fc.array(tool, { maxLength: 3 }),
    tool_choice: choice,
    parallel_tool_calls: fc.boolean(),
    response_format: format,
    reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    stop: fc.oneof(fc.string(), fc.array(fc.string(), { minLength: 1, maxLength: 4 })),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    prompt_cache_key: fc.string(),
  },
  { requiredKeys: ["model", "messages"] },
);
const MODELS = [CLAUDE, HAIKU, NOVA, "eu.anthropic.claude-opus-5-5", "openai.gpt-oss-20b-1:0"];

type Message = { readonly role: string; readonly content: readonly JsonObject[] };

/** Returns a fault that Converse rejects for any model, or null. */
function faultOf(sent: JsonObject): string | null {
  const messages = sent["messages"] as readonly Message[];
  if (messages.length === 0) return "no messages";
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== (index % 2 === 0 ? "user" : "assistant")) return "roles do not alternate";
    if (content.length === 0) return "an empty message";
    const blockTexts = content.flatMap(({ text: blockText }) =>
      typeof blockText === "string" ? [blockText] : [],
    );
    if (blockTexts.some((blockText) => blockText.trim() === "")) return "a blank text";
    const hasTools = content.some((block) => "toolUse" in block || "toolResult" in block);
    if (hasTools && sent["toolConfig"] === undefined) return "tool blocks without tools";
  }
  return null;
}

it("the Bedrock adapter either converts or rejects any valid body, and never throws", async () => {
  let sentCount = 0;
  const property = fc.asyncProperty(body, fc.constantFrom(...MODELS), async (raw, upstreamId) => {
    const parsed = parseChatRequest(raw);
    fc.pre(parsed.ok);
    const request = { upstreamId, body: parsed.value };
    const { answer, requests } = await answerTo(BEDROCK, request, BEDROCK_CHAT.text.json);
    expect(answer).toMatchObject(
      requests.length > 0 ? { kind: "json" } : { failure: { kind: "refused" } },
    );
    for (const { json } of requests) expect(faultOf(json)).toBeNull();
    sentCount += requests.length;
  });
  await fc.assert(property, { numRuns: effortFor(150, 5000) });
  expect(sentCount).toBeGreaterThan(25);
});
