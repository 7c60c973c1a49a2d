import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { matchTemplateText, createTextEventTemplate } from "../../src/models/core/text-template.ts";

const payload = (content: string, more: object = {}): string =>
  JSON.stringify({
    id: "chatcmpl-up",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
    usage: null,
    ...more,
  });
const text = fc.string({ unit: "binary" });

it("a text template reproduces any text exactly", () => {
  fc.assert(
    fc.property(text, text, (first, second) => {
      const template = createTextEventTemplate(payload(first), 0, first);
      const found = template === null ? null : matchTemplateText(payload(second), template);
      expect(JSON.parse(found ?? "null")).toBe(second);
    }),
    { numRuns: 2000 },
  );
});

it("a text template matches data only if nothing except the text differs", () => {
  const template = createTextEventTemplate(payload("a"), 0, "a");
  const fits = (data: string): boolean =>
    template !== null && matchTemplateText(data, template) !== null;
  expect(fits(payload("b"))).toBe(true);
  for (const data of [
    payload("b", { usage: { prompt_tokens: 1 } }),
    payload("b").replace('"finish_reason":null', '"finish_reason":"stop"'),
    payload("b").replace('"index":0', '"index":1'),
    payload("b").replace('"b"', '"b","tool_calls":[]'),
    payload("b").replace('"b"', "null"),
    payload("b").replace('"b"', '"\n"'),
    payload("b").replace('"b"', String.raw`"\x"`),
    payload("b").replace('"b"', '"b'),
    payload("b").slice(0, -1),
    "[DONE]",
    "",
  ]) {
    expect(fits(data)).toBe(false);
  }
});

it("chunks parsed by a template are identical to fully parsed chunks", () => {
  fc.assert(
    fc.property(
      fc.array(
        text.filter((each) => each !== ""),
        { minLength: 1 },
      ),
      (texts) => {
        const reader = new ChatChunkReader();
        const role = payload("").replace('"content"', '"role":"assistant","content"');
        reader.read(role, "message");
        const seen = texts.flatMap((each) => reader.read(payload(each), "message").map(textIn));
        expect(seen).toEqual(texts);
      },
    ),
  );
});

function textIn(event: StreamEvent): unknown {
  if (event.kind === "text") return JSON.parse(event.json);
  if (event.kind !== "chunk") return event.kind;
  const [choice] = event.chunk.choices;
  return choice?.delta.content;
}
