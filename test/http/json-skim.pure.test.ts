import * as fc from "fast-check";
import { expect, it } from "vitest";
import { JsonFieldBlanker, SseDecoder } from "../../src/shared/http/server-sent-events.ts";

const LEFT = new Set(["output", "logprobs"]);
const names = fc.constantFrom("output", "logprobs", "usage", 'out"put', "a", "output\\\\", "");
const words = fc.oneof(fc.string(), fc.constantFrom('"', "\\", '\\"output":', "}", "],", "output"));
const values = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 5 },
    words,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(names, tie("any"), { maxKeys: 4 }),
  ),
})).any;

/** Returns the value with null in place of the removed fields. */
function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, LEFT.has(name) ? null : without(field)]),
  );
}

it("JsonFieldBlanker replaces only the listed fields with null, however the JSON is split and indented", () => {
  const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 6 });
  fc.assert(
    fc.property(values, cuts, fc.constantFrom(0, 1), (value, at, indent) => {
      const json = JSON.stringify(value, null, indent);
      const skim = new JsonFieldBlanker(LEFT);
      const ends = [...at.toSorted((a, b) => a - b), json.length];
      let start = 0;
      let copy = "";
      for (const end of ends) {
        copy += skim.push(json.slice(start, end));
        start = Math.max(start, Math.min(end, json.length));
      }
      // JSON has no -0.
      expect(JSON.parse(copy)).toEqual(without(JSON.parse(json)));
    }),
  );
});

const event = (output: string): string =>
  `data: ${JSON.stringify({ type: "end", response: { output, usage: { total: 7 } } })}\n\n`;

it("the event stream decoder replaces the listed fields with null only in events that are too long", () => {
  const bytes = new TextEncoder().encode(event("short") + event("x".repeat(500)) + event("short"));
  for (const size of [1, 7, 64, bytes.length]) {
    const decoder = new SseDecoder(100, LEFT);
    const events: unknown[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      events.push(
        ...decoder.push(bytes.slice(at, at + size)).map((data) => JSON.parse(data) as unknown),
      );
    }
    const outputs = events.map((one) => (one as { response: { output: unknown } }).response.output);
    expect([outputs, decoder.overflowed]).toEqual([["short", null, "short"], false]);
  }
});
