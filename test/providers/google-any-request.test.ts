import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseChatRequest } from "../../src/models/core/core-request.ts";
import { objectOf } from "../../src/models/core/json-value.ts";
import { GOOGLE_CHAT } from "../fixtures/google-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import { GEMINI, MODEL } from "./google-kit.ts";

const f = (more: object = {}) => ({ type: "function", function: { name: "f", ...more } });
const word = fc.oneof(
  fc.string(),
  fc.constantFrom("__proto__", "\u0000", "data:", '{"a":1}', "[]"),
);
const nonempty = fc.string({ minLength: 1 });
/** Few IDs, so that results match calls. */
const id = fc.constantFrom("call_1", "toolu_2", "é|");
const args = fc.oneof({ weight: 9, arbitrary: fc.constantFrom("", "{}", '{"a":1}') }, word);
const extra = fc.option(fc.dictionary(fc.constantFrom("google", "x"), fc.jsonValue()), {
  nil: null,
});

const anyCall = fc.record({
  id,
  type: fc.constant("function"),
  function: fc.record({ name: nonempty, arguments: args }),
  extra_content: extra,
});

const inline = "data:image/png;base64,QQ==";
const anyUrl = fc.oneof(
  { weight: 9, arbitrary: fc.constant(inline) },
  fc.constantFrom("data:text/html;base64,QQ==", "https://localhost/", "nonsense"),
);
const anyPart = fc.oneof(
  fc.record({ type: fc.constant("text"), text: word }),
  fc.record({ type: fc.constant("image_url"), image_url: fc.record({ url: anyUrl }) }),
);
const custom = { type: "custom", custom: { name: "c" } };
const anyTool = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(f(), f({ parameters: null })) },
  fc.constant(custom),
);
const anyMessage = fc.oneof(
  fc.record({
    role: fc.constant("user"),
    content: fc.array(anyPart, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ role: fc.constantFrom("system", "developer", "user"), content: word }),
  fc.record({ role: fc.constant("tool"), tool_call_id: id, content: word }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.option(word, { nil: null }),
    tool_calls: fc.option(fc.array(anyCall, { minLength: 1, maxLength: 3 }), { nil: null }),
  }),
);
const anyBody = fc.record(
  {
    model: fc.constant("m"),
    messages: fc.array(anyMessage, { minLength: 1, maxLength: 6 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    n: fc.integer({ min: 1, max: 128 }),
    seed: fc.maxSafeInteger(),
    stop: fc.oneof(word, fc.array(word, { minLength: 1, maxLength: 4 })),
    tools: fc.array(anyTool, { maxLength: 3 }),
    tool_choice: fc.oneof(
      fc.constantFrom("none", "auto", "required"),
      fc.record({ type: fc.constantFrom("function", "allowed_tools"), function: fc.jsonValue() }),
    ),
    response_format: fc.constantFrom({ type: "text" }, { type: "json_object" }),
    reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    metadata: fc.jsonValue(),
  },
  { requiredKeys: ["model", "messages"] },
);

it("the Google adapter either converts or rejects any valid request, and never throws", async () => {
  const model = fc.constantFrom(MODEL, "gemini-2.5-pro", "gemma-4", "x");
  const seen = { converted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(anyBody, model, async (body, upstreamId) => {
      const checked = parseChatRequest(body);
      if (!checked.ok) return;
      const call = { upstreamId, body: checked.value };
      const { answer, requests } = await answerTo(GEMINI, call, GOOGLE_CHAT.text.json);
      const isRefused = answer.kind === "failure" && answer.failure.kind === "refused";
      seen[isRefused ? "refused" : "converted"]++;
      const caps = requests.map((one) => objectOf(one.json["generationConfig"])["maxOutputTokens"]);
      expect(caps).toEqual(isRefused ? [] : [256]);
    }),
    { numRuns: 300 },
  );
  expect(Math.min(seen.converted, seen.refused)).toBeGreaterThan(0);
});
