import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { copyExactJson, parseJson } from "../../src/shared/exact-json.ts";

/** Numbers that a double or JavaScript's notation would change, and others. */
const numbers = fc.oneof(
  fc.constantFrom("0", "-0", "1.0", "1e3", "1E+2", "-0.0", "1e-7", "0.00000012", "100.50", "1e400"),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);
const keys = fc.oneof(
  fc.constantFrom("1", "0", "10", "01", "a", "__proto__", "constructor", '"', "\\", "4294967295"),
  fc.string({ unit: "binary" }),
);

/** The text of JSON without white space, with every key of an object once. */
const { json: texts } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    numbers,
    fc.constantFrom("null", "true", "false", "[]", "{}"),
    fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
    fc.array(tie("json"), { maxLength: 5 }).map((items) => `[${items.join(",")}]`),
    fc
      .uniqueArray(fc.tuple(keys, tie("json")), { selector: ([key]) => key, maxLength: 5 })
      .map((members) => members.map(([key, value]) => `${JSON.stringify(key)}:${value}`))
      .map((members) => `{${members.join(",")}}`),
  ),
}));

describe("parseJson", () => {
  it("returns a value that JSON.stringify writes with the original digits and key order", () => {
    fc.assert(
      fc.property(texts, (json) => {
        // Only numbers within objects and arrays keep their digits.
        fc.pre(!/^-?[\d.eE+-]+$/.test(json));
        expect(JSON.stringify(parseJson(json))).toBe(json);
      }),
    );
  });

  it("returns the value that JSON.parse returns, whatever white space and escapes the text has", () => {
    fc.assert(
      fc.property(texts, fc.constantFrom("", " ", "\n\t "), (json, space) => {
        const spaced = JSON.stringify(JSON.parse(json), null, space).replaceAll("/", "\\u002f");
        const text = `${space}{"1":${space}[1.0, ${spaced}${space}] }${space}`;
        expect(Object.keys(parseJson(text) as object)).toEqual(["1"]);
        expect(JSON.parse(JSON.stringify(parseJson(text)))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("returns the last value for a duplicate key, as JSON.parse does", () => {
    expect(JSON.stringify(parseJson('{"a":1.0,"b":1.0,"a":"x"}'))).toBe('{"a":"x","b":1.0}');
  });

  it("reads JSON with thousands of nested levels without overflowing the stack", () => {
    const text = `${"[".repeat(5000)}1.0${"]".repeat(5000)}`;
    expect(parseJson(text)).toHaveLength(1);
  });

  it("throws for text that is not JSON", () => {
    for (const text of ["", "{", "1.0.", "{'a':1}"]) {
      expect(() => parseJson(text)).toThrow(SyntaxError);
    }
  });
});

describe("copyExactJson", () => {
  it("keeps digits and key order in a copy, except the digits of changed numbers", () => {
    const original = parseJson('{"b":1.0,"2":2.0,"1":3}') as Record<string, unknown>;
    const copy = copyExactJson(original, { ...original, "2": 5, type: "object" });
    expect(JSON.stringify(copy)).toBe('{"b":1.0,"2":5,"1":3,"type":"object"}');
  });
});
