import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createSchemaInstance } from "../../../src/models/providers/sandbox/schema-instance.ts";
import { misfit } from "./schema-validator.ts";

function range<T>(arbitrary: fc.Arbitrary<T>, names: readonly [string, string]) {
  return fc.tuple(arbitrary, arbitrary).map(([a, b]) => {
    const [low, high] = a <= b ? [a, b] : [b, a];
    return { [names[0]]: low, [names[1]]: high };
  });
}

const maybe = <T extends object>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | object> =>
  fc.oneof(fc.constant({}), arbitrary);
const name = fc.oneof(fc.stringMatching(/^[a-z]{1,6}$/), fc.constant("__proto__"));
const numbers = fc.oneof(
  range(fc.integer({ min: -1e6, max: 1e6 }), ["minimum", "maximum"]),
  fc.nat(1000).map((n) => ({ exclusiveMinimum: n, exclusiveMaximum: n + 2 })),
  fc.nat(1000).map((n) => ({ exclusiveMinimum: n, multipleOf: 7 })),
  fc.integer({ min: -50, max: 50 }).map((n) => ({ maximum: n, multipleOf: 5 })),
);
const scalar = fc.oneof(
  fc.constantFrom({ type: "boolean" }, { type: "null" }, { type: ["null", "string"] }),
  fc.uniqueArray(fc.oneof(fc.string(), fc.integer(), fc.boolean()), { minLength: 1 }).map((e) => ({
    enum: e,
  })),
  fc.jsonValue().map((value) => ({ const: value })),
  maybe(numbers).map((bounds) => Object.assign({ type: "integer" }, bounds)),
  maybe(
    fc.oneof(
      numbers,
      range(fc.float({ noNaN: true, noDefaultInfinity: true }), ["minimum", "maximum"]),
    ),
  ).map((bounds) => Object.assign({ type: "number" }, bounds)),
  fc.nat(20).map((k) => ({ type: "number", minimum: k / 10, multipleOf: 0.1 })),
  maybe(range(fc.nat(30), ["minLength", "maxLength"])).map((b) =>
    Object.assign({ type: "string" }, b),
  ),
  fc.constantFrom("date-time", "date", "email", "uuid", "uri", "ipv4").map((format) => ({
    type: "string",
    format,
  })),
);
const schemas = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc
      .record({
        properties: fc.dictionary(name, tie("schema"), { maxKeys: 4, noNullPrototype: true }),
        all: fc.boolean(),
        free: fc.uniqueArray(name, { maxLength: 2 }),
      })
      .map(({ properties, all, free }) => ({
        type: "object",
        properties,
        required: all ? [...new Set([...Object.keys(properties), ...free])] : free,
      })),
    fc
      .record({ items: tie("schema"), sizes: maybe(range(fc.nat(4), ["minItems", "maxItems"])) })
      .map(({ items, sizes }) => Object.assign({ type: "array", items }, sizes)),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((prefixItems) => ({
      type: "array",
      prefixItems,
    })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    tie("schema").map((part) => ({ allOf: [part] })),
  ),
}));

it("the sandbox returns a valid and reproducible instance for each variant of a schema", () => {
  fc.assert(
    fc.property(schemas.schema, fc.nat(3), (schema, variant) => {
      const value = JSON.parse(JSON.stringify(createSchemaInstance(schema, variant))) as unknown;
      expect(misfit(schema, value)).toBeNull();
      expect(JSON.stringify(createSchemaInstance(schema, variant))).toBe(JSON.stringify(value));
    }),
    { numRuns: 2000 },
  );
});

it("the sandbox returns finite instances of recursive schemas: lists, trees and an endless first branch", () => {
  const node = {
    type: "object",
    properties: {
      value: { type: "integer" },
      next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
      children: { type: "array", items: { $ref: "#/$defs/node" } },
    },
    required: ["value", "next", "children"],
  };
  const schema = { $ref: "#/$defs/node", $defs: { node } };
  expect(misfit(schema, createSchemaInstance(schema))).toBeNull();
  expect(JSON.stringify(createSchemaInstance(schema)).length).toBeLessThan(2000);

  const leaf = { type: "object", properties: { leaf: { const: 1 } }, required: ["leaf"] };
  const fork = {
    type: "object",
    properties: { left: { $ref: "#/$defs/tree" }, right: { $ref: "#/$defs/tree" } },
    required: ["left", "right"],
  };
  const tree = { anyOf: [{ $ref: "#/$defs/fork" }, { $ref: "#/$defs/leaf" }] };
  const forest = { $ref: "#/$defs/tree", $defs: { tree, fork, leaf } };
  expect(misfit(forest, createSchemaInstance(forest))).toBeNull();
});

it("the sandbox returns a value even for unsatisfiable, self-referential and endless schemas", () => {
  const never = { type: "object", properties: { me: { $ref: "#" } }, required: ["me"] };
  const bomb = {
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => {
        const half = { $ref: `#/$defs/d${i + 1}` };
        return [
          `d${i}`,
          { type: "object", properties: { a: half, b: half }, required: ["a", "b"] },
        ];
      }),
    ),
  };
  const merging = {
    allOf: [{ $ref: "#/$defs/x" }, { properties: { a: { $ref: "#" }, b: { $ref: "#" } } }],
    $defs: {
      x: { properties: { a: { $ref: "#" }, b: { $ref: "#" } }, required: ["a", "b"] },
    },
  };
  const huge = { type: "array", minItems: 1e9, items: { type: "string", minLength: 1e9 } };
  const long = "n".repeat(100_000);
  const wide = { anyOf: Array.from({ length: 20_000 }, () => ({ $ref: "#" })) };
  const named = { properties: { [long]: { $ref: "#" }, b: { $ref: "#" } }, required: [long, "b"] };
  for (const schema of [
    never,
    bomb,
    merging,
    huge,
    named,
    wide,
    { $ref: "#" },
    { allOf: [{ $ref: "#" }] },
  ]) {
    expect(JSON.stringify(createSchemaInstance(schema)).length).toBeLessThan(2_000_000);
  }
});

it("the sandbox combines the parts of allOf, and ignores unknown references", () => {
  const both = {
    allOf: [
      { type: "integer", minimum: 5 },
      { maximum: 6, multipleOf: 3 },
    ],
  };
  expect(createSchemaInstance(both)).toBe(6);
  expect(createSchemaInstance({ $ref: "https://example.com/schema.json" })).toBe("text");
  expect(createSchemaInstance({ $ref: "#/$defs/a~1b", $defs: { "a/b": { const: 7 } } })).toBe(7);
  const sided = { type: "object", properties: { a: { const: 1 } }, oneOf: [{ required: ["a"] }] };
  expect(createSchemaInstance(sided)).toEqual({ a: 1 });
});

it("the sandbox returns unique items if the schema allows them", () => {
  for (const items of [
    { type: "string" },
    { type: "string", maxLength: 2 },
    { type: "integer", minimum: 1, maximum: 5 },
    { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
    { enum: ["a", "b", "c", "d"] },
    { type: "object", properties: { id: { type: "string", format: "uuid" } }, required: ["id"] },
  ]) {
    const schema = { type: "array", items, minItems: 4, uniqueItems: true };
    expect(misfit(schema, createSchemaInstance(schema))).toBeNull();
  }
});

it("the sandbox ignores a schema's patterns without running them", () => {
  for (const pattern of ["^[A-Z]{3}$", "(", "a{999999}", "^(a+)+$"]) {
    expect(createSchemaInstance({ type: "string", pattern })).toBe("text");
  }
});
