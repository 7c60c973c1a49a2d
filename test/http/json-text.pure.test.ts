import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import {
  JSON_DEPTH_MAX,
  JSON_NAMES_MAX,
  JSON_OBJECT_NAMES_MAX,
  JSON_VALUES_MAX,
  parseJsonText,
} from "../../src/shared/http/json-text.ts";

function refusalOf(text: string): string {
  const result = parseJsonText(text);
  if (result.ok) return "accepted";
  expect(result.failure).toMatchObject({ kind: "invalid_request", param: null });
  return result.failure.kind === "invalid_request" ? result.failure.message : "";
}

function nested(depth: number): string {
  return `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
}

function objects(count: number): string {
  return `{"a":[${"{},".repeat(count)}0]}`;
}

/** Writes JSON with arbitrary whitespace and escapes, as no serializer would. */
function written(value: unknown, noise: () => number): string {
  const space = () => [" ", "\n", "", "\t", "", "\r\n "][noise() % 6] ?? "";
  const text = (raw: string) =>
    noise() % 3 > 0
      ? JSON.stringify(raw)
      : `"${Array.from({ length: raw.length }, (_, i) => `\\u${raw.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")}"`;
  const write = (item: unknown): string => {
    if (typeof item === "string") return text(item);
    if (Array.isArray(item)) return `[${item.map((i) => space() + write(i) + space()).join(",")}]`;
    if (typeof item !== "object" || item === null) return JSON.stringify(item);
    const members = Object.entries(item).map(([key, member]) =>
      [space(), text(key), space(), ":", space(), write(member), space()].join(""),
    );
    return `{${members.join(",")}}`;
  };
  return space() + write(value) + space();
}

const jsonObjects = fc
  .dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary", maxDepth: 6 }))
  .filter((value) => JSON.stringify(value).isWellFormed());

const named = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"n${i}":0`).join(",")}}`;
const namedList = (count: number): string =>
  `{"a":[${Array.from({ length: count }, () => '{"b":0}').join(",")}]}`;

describe("strict JSON parsing", () => {
  it("accepts any object and returns the result of JSON.parse, whatever the white space and escapes", () => {
    fc.assert(
      fc.property(jsonObjects, fc.infiniteStream(fc.nat(30)), (value, stream) => {
        const text = written(value, () => Number(stream.next().value));
        expect(parseJsonText(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
      { numRuns: effortFor(100, 4000) },
    );
  });

  it("accepts the same key in different objects, and structural characters in strings", () => {
    const text = '{"a":{"a":[{"a":1},{"a":2}]},"b":"{\\"a\\":[,:\\\\","\\\\":"\\\\\\"::"}';
    expect(parseJsonText(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  it("accepts 64 levels of nesting", () => {
    expect(refusalOf(nested(JSON_DEPTH_MAX))).toBe("accepted");
  });

  it("accepts __proto__ and constructor as ordinary keys", () => {
    const result = parseJsonText(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    );
    expect(result.ok && Object.keys(result.value)).toEqual(["__proto__", "constructor"]);
    expect(result.ok && Object.getPrototypeOf(result.value)).toBe(Object.prototype);
    expect("polluted" in {}).toBe(false);
  });

  it("accepts a surrogate pair written as escapes", () => {
    expect(parseJsonText(String.raw`{"a":"\ud83d\ude00"}`)).toEqual({
      ok: true,
      value: { a: "😀" },
    });
  });
});

describe("strict JSON parsing of an invalid body", () => {
  it("rejects 65 or more levels of nesting before it parses the body", () => {
    expect(refusalOf(nested(JSON_DEPTH_MAX + 1))).toContain("is nested deeper than 64");
    expect(refusalOf("[".repeat(1_000_000))).toContain("is nested deeper than 64");
    expect(refusalOf('{"a":'.repeat(1_000_000))).toContain("is nested deeper than 64");
  });

  it.each([
    ["at the top level", '{"a":1,"a":1}'],
    ["with another key in between", '{"a":1,"b":2,"a":3}'],
    ["nested", '{"m":[{"role":"user","content":{"x":1,"x":2}}]}'],
    ["with different escapes", String.raw`{"a":1,"\u0061":2}`],
    ["empty", '{"":1,"":2}'],
    ["__proto__", '{"__proto__":1,"__proto__":2}'],
    ["an index", '{"1":1,"1":2}'],
    ["hidden behind escaped quotes", String.raw`{"s":"\\\"","a\"":1,"a\"":2}`],
  ])("rejects a duplicate key %s", (_, text) => {
    expect(refusalOf(text)).toContain("duplicate key");
  });

  it("rejects a duplicate key anywhere in any object", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }),
        fc.nat(),
        (value, pick) => {
          const keys = Object.keys(value);
          const again = JSON.stringify(keys[pick % keys.length]);
          const text = `{"in":[${JSON.stringify(value).slice(0, -1)},${again}:0}]}`;
          expect(refusalOf(text)).toContain("duplicate key");
        },
      ),
    );
  });

  it.each([
    ["a value", String.raw`{"user":"\ud800"}`],
    ["a key", String.raw`{"x":{"\udc00":1}}`],
    ["an array", String.raw`{"x":["ok","\uD83D\u0020"]}`],
  ])("rejects a lone surrogate in %s", (_, text) => {
    expect(refusalOf(text)).toContain("lone surrogate");
  });

  it.each(["1e400", "-1e400", "9".repeat(400)])("rejects the number %s", (number) => {
    const text = `{"a":"Infinity","x":[{},{"y":${number}}]}`;
    expect(parseJsonText(text)).toMatchObject({
      failure: {
        message: "The request body contains a number that is too large.",
        param: "x[1].y",
      },
    });
  });

  it("reports a null param for a number that is too large in a field with an empty name", () => {
    expect(parseJsonText('{"":1e400}')).toMatchObject({ failure: { param: null } });
    expect(parseJsonText('{"":{"a":1e400}}')).toMatchObject({ failure: { param: ".a" } });
  });

  it.each(["[]", "null", "1", '"text"', "true", ' [{"a":1}] '])(
    "rejects the body %s, which is not an object",
    (text) => {
      expect(refusalOf(text)).toBe("The request body must be a JSON object.");
    },
  );

  it.each([
    "{",
    "",
    " ",
    '{"a":}',
    '{"a":1,}',
    "{'a':1}",
    '{"a":1}{}',
    '{"a',
    '{"a":NaN}',
    "]",
    '"\\',
  ])("rejects the body %s as invalid JSON", (text) => {
    expect(refusalOf(text)).toBe("The request body is not valid JSON.");
  });

  it("rejects a body with too many field names, which would block an isolate during validation", () => {
    expect(refusalOf(named(JSON_OBJECT_NAMES_MAX))).toBe("accepted");
    expect(refusalOf(named(JSON_OBJECT_NAMES_MAX + 1))).toContain("more than 10000 fields");
    expect(refusalOf(namedList(JSON_NAMES_MAX - 1))).toBe("accepted");
    expect(refusalOf(namedList(JSON_NAMES_MAX))).toContain("more than 100000 fields");
  });

  it("rejects a body with too many values, which would exceed an isolate's memory", () => {
    expect(refusalOf(objects(JSON_VALUES_MAX))).toContain("values");
    expect(refusalOf(objects(1000))).toBe("accepted");
  });
});

it("strict JSON parsing returns the result of JSON.parse for all accepted bodies, and never throws", () => {
  const damage = fc.record({
    at: fc.nat(),
    put: fc.constantFrom(...Array.from('{}[]:,"\\ ue0-.\u0000')),
    drop: fc.nat(1),
  });
  let accepted = 0;
  fc.assert(
    fc.property(jsonObjects, damage, (value, { at, put, drop }) => {
      const text = JSON.stringify(value);
      const broken = text.slice(0, at % text.length) + put + text.slice((at % text.length) + drop);
      const result = parseJsonText(broken);
      accepted += Number(result.ok);
      expect(!result.ok || isDeepEqual(result.value, JSON.parse(broken))).toBe(true);
    }),
    { numRuns: effortFor(500, 20_000) },
  );
  expect(accepted).toBeGreaterThan(0);
});

function isDeepEqual(one: unknown, other: unknown): boolean {
  // Written again, a value keeps the digits of its text. Parsed again, it has those of a double.
  return JSON.stringify(JSON.parse(JSON.stringify(one))) === JSON.stringify(other);
}
