import { expect, it } from "vitest";
import { apiTypes } from "../../scripts/site/api-types.ts";

const schema = (of: object) => ({ content: { "application/json": { schema: of } } });
const DOCUMENT = {
  paths: {
    "/v1/things/{id}": {
      get: {
        parameters: [
          { name: "id", in: "path", schema: { type: "string" } },
          { name: "limit", in: "query", schema: { type: "integer" } },
        ],
        responses: { 200: schema({ $ref: "#/components/schemas/Thing" }), 404: schema({}) },
      },
      patch: {
        requestBody: schema({ type: "object", properties: { name: { type: "string" } } }),
        responses: { 200: schema({ $ref: "#/components/schemas/Thing" }) },
      },
    },
  },
  components: {
    schemas: {
      Thing: {
        type: "object",
        required: ["id", "kinds"],
        properties: {
          id: { type: ["string", "null"] },
          kinds: { type: "array", items: { enum: ["a", "b"] } },
          "odd-name": { anyOf: [{ const: true }, { type: "null" }] },
          prices: { type: "object", additionalProperties: { type: "number" } },
        },
      },
    },
  },
};

it("the generator of API types converts an OpenAPI document's schemas and calls", () => {
  expect(apiTypes(JSON.stringify(DOCUMENT)).split("\n").slice(1)).toEqual([
    'export type Thing = { id: string | null; kinds: readonly ("a" | "b")[]; "odd-name"?: true | null; prices?: { [name: string]: number } };',
    "export type Calls = {",
    '  "GET /v1/things/{id}": { query: { limit?: number }; body: undefined; answer: Thing };',
    '  "PATCH /v1/things/{id}": { query: {  }; body: { name?: string }; answer: Thing };',
    "};",
    "",
  ]);
});
