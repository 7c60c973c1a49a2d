import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();
const client = (apiKey = at.key) => new Anthropic({ apiKey, baseURL: at.origin, maxRetries: 0 });
const asked = {
  model: "sandbox/echo",
  max_tokens: 200,
  messages: [{ role: "user" as const, content: "Hello from a client" }],
};
const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const tools: Anthropic.Tool[] = [
  {
    name: "get_weather",
    input_schema: { type: "object", properties: { city: { type: "string" } } },
  },
];

it("messages, charged", async () => {
  const before = await at.balance();
  const message = await client().messages.create(asked);
  expect(textOf(message)).toContain("Hello from a client");
  expect(message.stop_reason).toBe("end_turn");
  expect(message.usage.output_tokens).toBeGreaterThan(0);
  expect(await at.balance()).toBeLessThan(before);
});

it("a stream, gathered by the SDK's own helper", async () => {
  const stream = client().messages.stream(asked);
  const parts: string[] = [];
  stream.on("text", (part) => parts.push(part));
  expect(textOf(await stream.finalMessage())).toBe(parts.join(""));
});

it("a tool is called, and its result goes back", async () => {
  const first = await client().messages.create({ ...asked, tools, tool_choice: { type: "any" } });
  const use = first.content.find((block) => block.type === "tool_use");
  expect(use?.name).toBe("get_weather");
  const last = await client().messages.create({
    ...asked,
    tools,
    messages: [
      ...asked.messages,
      { role: "assistant", content: first.content },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: use?.id ?? "", content: "21 degrees" }],
      },
    ],
  });
  expect(textOf(last)).toBeTruthy();
});

it("count_tokens is free", async () => {
  const before = await at.balance();
  const { input_tokens: tokens } = await client().messages.countTokens({
    model: asked.model,
    messages: asked.messages,
  });
  expect(tokens).toBeGreaterThan(0);
  expect(await at.balance()).toBe(before);
});

it("errors of its own classes", async () => {
  const { messages } = client();
  await expect(messages.create({ ...asked, model: "sandbox/none" })).rejects.toBeInstanceOf(
    NotFoundError,
  );
  await expect(messages.create({ ...asked, max_tokens: 0 })).rejects.toBeInstanceOf(
    BadRequestError,
  );
  await expect(client("svc_sk_none").messages.create(asked)).rejects.toBeInstanceOf(
    AuthenticationError,
  );
});
