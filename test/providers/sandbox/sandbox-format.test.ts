import { describe, expect, it } from "vitest";
import { chunkChoices, complete, replyTo, contentOf, streamed, user } from "./sandbox-call.ts";

describe("the response_format of the sandbox", () => {
  const schema = {
    type: "object",
    properties: {
      city: { type: "string" },
      degrees: { type: "number", minimum: 10 },
      unit: { enum: ["C", "F"] },
    },
    required: ["city", "degrees", "unit"],
    additionalProperties: false,
  };
  const asSchema = { type: "json_schema", json_schema: { name: "weather", strict: true, schema } };

  it("returns the text inside valid JSON for json_object", async () => {
    const content = await replyTo('say "hi"', { response_format: { type: "json_object" } });
    expect(JSON.parse(content ?? "")).toEqual({ echo: 'say "hi"' });
  });

  it("returns an instance of the schema for json_schema, even in a stream", async () => {
    const instance = { city: "city", degrees: 10, unit: "C" };
    expect(JSON.parse((await replyTo("x", { response_format: asSchema })) ?? "")).toEqual(instance);
    const all = await streamed({ messages: [user("x")], response_format: asSchema });
    expect(JSON.parse(contentOf(all))).toEqual(instance);
    expect(chunkChoices(all).length).toBeGreaterThan(4);
  });

  it("treats json_schema without a schema like json_object, and text like no format", async () => {
    const bare = { response_format: { type: "json_schema", json_schema: { name: "x" } } };
    expect(await replyTo("a", bare)).toBe('{"echo":"a"}');
    expect(await replyTo("a", { response_format: { type: "text" } })).toBe("a");
  });

  it("cuts JSON at the cap with finish_reason length", async () => {
    const body = { messages: [user("x")], response_format: asSchema };
    const [choice] = (await complete(body, { cap: 1 })).choices;
    expect(choice.finish_reason).toBe("length");
    expect(() => JSON.parse(choice.message.content ?? "") as unknown).toThrow(SyntaxError);
  });
});
