import { expect, it } from "vitest";
import { pickFields, removeNulls } from "../../src/models/core/json-value.ts";

const BODY = JSON.parse('{"a":1,"b":null,"__proto__":{"stream":true}}') as object;

it("removeNulls drops null fields, and copies a field named __proto__ without inheriting from it", () => {
  const kept = removeNulls({ ...BODY, c: undefined });
  expect(Object.keys(kept)).toEqual(["a", "__proto__"]);
  expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
  expect(kept["stream"]).toBeUndefined();
  expect(JSON.stringify(kept)).toBe('{"a":1,"__proto__":{"stream":true}}');
});

it("pickFields returns only the named fields that are not null", () => {
  expect(pickFields({ a: 0, b: null, c: "" }, ["a", "b", "c", "d"])).toEqual({ a: 0, c: "" });
});
