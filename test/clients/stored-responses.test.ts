import {
  Agent,
  run,
  setDefaultOpenAIClient,
  setOpenAIAPI,
  setTracingDisabled,
} from "@openai/agents";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { beforeAll, describe, expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();
let key = "";
beforeAll(async () => {
  key = await at.storingKey();
});

const tools = [
  {
    type: "function" as const,
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    strict: false,
  },
];
const CALL = 'call get_weather {"city":"Paris"}';

describe.each([
  ["7", OpenAI],
  ["6", OpenAI6 as unknown as typeof OpenAI],
])("the openai package, version %s, with stored responses", (_, Client) => {
  const client = () => new Client({ apiKey: key, baseURL: at.baseUrl, maxRetries: 0 });

  it("continues a response by previous_response_id, and reads, lists and deletes responses", async () => {
    const { responses } = client();
    const first = await responses.create({ model: "sandbox/agent", input: CALL, tools });
    const call = first.output.find((item) => item.type === "function_call");
    const second = await responses.create({
      model: "sandbox/agent",
      previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: call?.call_id ?? "", output: "21 degrees" }],
      tools,
    });
    expect(second.output_text).toContain("21 degrees");
    const stream = responses.stream({
      model: "sandbox/echo",
      previous_response_id: second.id,
      input: "And then?",
    });
    const third = await stream.finalResponse();
    expect(third).toMatchObject({ store: true, previous_response_id: second.id });
    expect((await responses.retrieve(third.id)).output_text).toBe(third.output_text);
    const types: string[] = [];
    for await (const { type } of responses.inputItems.list(third.id, { order: "asc", limit: 2 })) {
      types.push(String(type));
    }
    expect(types[0]).toBe("message");
    expect(types).toEqual(
      expect.arrayContaining(["function_call", "function_call_output", "message"]),
    );
    await responses.delete(first.id);
    await expect(responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 });
    const gone = responses.create({
      model: "sandbox/echo",
      previous_response_id: third.id,
      input: "x",
    });
    await expect(gone).rejects.toMatchObject({ code: "previous_response_not_found" });
  });

  it("gets an error with advice if the organization stores no responses", async () => {
    const { responses } = new Client({ apiKey: at.key, baseURL: at.baseUrl, maxRetries: 0 });
    const { id } = await responses.create({ model: "sandbox/echo", input: "Hi" });
    const next = responses.create({
      model: "sandbox/echo",
      previous_response_id: id,
      input: "x",
    });
    await expect(next).rejects.toMatchObject({ status: 400 });
    await expect(next).rejects.toThrow(/keep_responses_hours/);
  });
});

it("OpenAI's Agents SDK chains stored responses", async () => {
  setTracingDisabled(true);
  setOpenAIAPI("responses");
  setDefaultOpenAIClient(new OpenAI({ apiKey: key, baseURL: at.baseUrl, maxRetries: 0 }) as never);
  const agent = new Agent({ name: "Echo", model: "sandbox/echo" });
  const first = await run(agent, "One");
  const second = await run(agent, "Two", { previousResponseId: first.lastResponseId ?? "" });
  expect([first.finalOutput, second.finalOutput]).toEqual(["One", "Two"]);
  const read = await fetch(
    `${at.baseUrl}/responses/${second.lastResponseId}/input_items?order=asc`,
    {
      headers: { authorization: `Bearer ${key}` },
    },
  );
  expect(await read.json()).toMatchObject({
    data: [{ role: "user" }, { role: "assistant" }, { role: "user" }],
  });
});
