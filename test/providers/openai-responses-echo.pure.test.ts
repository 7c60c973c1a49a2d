import * as fc from "fast-check";
import { expect, it } from "vitest";
import { findTooLargeEcho } from "../../src/models/protocols/responses/host-request.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { RESPONSES_CHAT } from "../fixtures/responses-replies.ts";
import { answerTo } from "./adapter-kit.ts";

const MIB = 1024 * 1024;
const OPENAI = createOpenAiCompatibleProvider({
  id: "openai",
  baseUrl: "https://api.openai.test/v1/",
  profile: OPENAI_HOST_PROFILE,
  secret: "secret",
});

const LONG = "x".repeat(6 * MIB);
const TOOL = { type: "function", name: "f", parameters: { type: "object" } };

/** Returns the number of provider requests and the failure of a request. */
async function sendRequest(native: JsonObject | null, chat: JsonObject, stream = false) {
  const more =
    native === null
      ? {}
      : { native: { wire: "responses", body: { input: "Hi", ...native }, headers: {} } as const };
  const call = { upstreamId: "gpt-6.1-sol", stream, ...more, body: chat };
  const reply = stream ? RESPONSES_CHAT.text.stream : RESPONSES_CHAT.text.json;
  const { answer, requests } = await answerTo(OPENAI, call, reply);
  const param = answer.kind === "failure" ? (answer.failure.param ?? "none") : null;
  return { count: requests.length, param };
}

it.each([
  ["instructions", { instructions: LONG }, {}],
  ["tools", { tools: [{ ...TOOL, description: LONG }] }, {}],
  ["response_format", { text: { format: { type: "json_schema", description: LONG } } }, {}],
  ["tools", null, { tools: [{ type: "function", function: { name: "f", description: LONG } }] }],
] as const)(
  "a Responses request is rejected before any call if %s would make the repeated response too large",
  async (param, native, chat) => {
    expect(await sendRequest(native, chat)).toEqual({ count: 0, param });
    expect(await sendRequest(native, chat, true)).toEqual({ count: 1, param: null });
  },
);

it("a Responses request may have long fields if the response doesn't repeat them, and input of any length", async () => {
  const instructions = "x".repeat(4 * MIB);
  expect(await sendRequest({ instructions, input: LONG }, {})).toEqual({ count: 1, param: null });
});

/**
 * Returns the maximum size of a response as a provider can format it: a line for each value, and
 * only ASCII.
 */
function written(value: unknown): number {
  const text = JSON.stringify(value, null, 2);
  return text.replaceAll(/[\u0080-\uffff]/g, String.raw`\u0000`).length;
}

it("a Responses request is accepted if its response is sure to fit in memory, and rejected only if its fields are long", () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 12 },
      fc
        .tuple(fc.constantFrom("x", "é", "\u0000", '"', "世"), fc.nat(40))
        .map(([c, n]) => c.repeat(n)),
      fc.integer(),
      fc.constantFrom(true, null),
      fc.array(tie("any"), { maxLength: 4 }),
      fc.dictionary(fc.string({ unit: "binary", maxLength: 6 }), tie("any"), { maxKeys: 4 }),
    ),
  })).any;
  fc.assert(
    fc.property(value, fc.integer({ min: 1, max: 6 }), (inner, times) => {
      const one = JSON.stringify(inner).length;
      const tools = Array.from({ length: Math.ceil((times * MIB) / one / 40) }, () => inner);
      const body = { input: LONG, tools: Array.from({ length: 20 }, () => tools) };
      const bytes = written({ tools: body.tools });
      const isRefused = findTooLargeEcho(body) !== null;
      expect(bytes).toBeGreaterThan(isRefused ? 4 * MIB : 0);
      expect(bytes).toBeLessThan(isRefused ? Infinity : 16 * MIB);
    }),
    { numRuns: 10 },
  );
});
