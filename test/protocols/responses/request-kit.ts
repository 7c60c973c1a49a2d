import { expect } from "vitest";
import { chatBodySchema } from "../../../src/models/core/core-request.ts";
import type { ParsedRequest } from "../../../src/models/core/endpoint-adapter.ts";
import { responsesEndpoint } from "../../../src/models/endpoints/responses.ts";

const AT = { header: () => undefined, query: () => undefined };
export const parse = (body: object) =>
  responsesEndpoint.parse({ model: "m", input: "Hi", ...body }, AT);

export function parseRequest(body: object): ParsedRequest {
  const parsed = parse(body);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  expect(chatBodySchema.safeParse(parsed.value.request.body).success).toBe(true);
  return parsed.value;
}

export const core = (body: object) =>
  parseRequest(body).request.body as unknown as Record<string, unknown>;
export const messages = (input: unknown, more: object = {}) => core({ input, ...more })["messages"];
export const rejectionOf = (body: object) => {
  const parsed = parse(body);
  if (parsed.ok || parsed.failure.kind !== "invalid_request") throw new Error("not refused");
  return parsed.failure;
};

export const call = (id: string, name = "f", args = "{}") => ({
  type: "function_call",
  call_id: id,
  name,
  arguments: args,
});
export const output = (id: string, text: unknown = "done") => ({
  type: "function_call_output",
  call_id: id,
  output: text,
});
export const coreCall = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
export const tool = (id: string, content = "done") => ({ role: "tool", tool_call_id: id, content });
export const IMAGE = "data:image/png;base64,AAAA";

export function fn(name: string, more: object = {}) {
  return { type: "function", name, ...more };
}
