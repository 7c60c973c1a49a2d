import { afterEach, expect, vi } from "vitest";
import { message as messageSchema, refusal } from "../protocols/messages/message-schemas.ts";
import { parseEvents, foldBlocks } from "../protocols/messages/fold.ts";
import type { Event } from "../protocols/messages/fold.ts";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";
import { mockUpstream, upstreamBindings } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

export type Json = Record<string, unknown>;

/** Sends "Hello there" to `sandbox/echo` by POST /v1/messages, unless the fields differ. */
export function messages(
  key: string | undefined,
  fields: Json = {},
  options: Pick<Sending, "headers" | "bindings"> = {},
): Promise<Response> {
  const conversation = [{ role: "user", content: "Hello there" }];
  const body = { model: "sandbox/echo", max_tokens: 256, messages: conversation, ...fields };
  return send("/v1/messages", { key, body, ...options });
}

export async function messageOf(response: Response): Promise<Json> {
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  return messageSchema.parse(JSON.parse(text));
}

/** Returns a stream's message as a strict client joins it, with the usage of its start. */
export async function readFoldedMessage(
  response: Response,
): Promise<{ message: Json; started: Json }> {
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const events = parseEvents(await response.text()).filter(({ name }) => name !== "ping");
  return foldMessage(events);
}

/**
 * The events must be one message_start, blocks, one message_delta and one message_stop, in this
 * order.
 */
export function foldMessage(events: readonly Event[]): { message: Json; started: Json } {
  const [first, ...rest] = events;
  const [delta, last] = rest.splice(-2);
  expect([first?.name, delta?.name, last]).toEqual([
    "message_start",
    "message_delta",
    { name: "message_stop", data: { type: "message_stop" } },
  ]);
  const start = first?.data["message"] as Json;
  expect(start).toMatchObject({ content: [], stop_reason: null, stop_sequence: null });
  const content = foldBlocks(rest);
  const end = { ...(delta?.data["delta"] as Json), usage: delta?.data["usage"] };
  return { message: { ...start, content, ...end }, started: start["usage"] as Json };
}

/** Returns an error in Anthropic's format: status, type, our code and the whole error. */
export async function anthropicErrorOf(response: Response): Promise<{
  readonly status: number;
  readonly type: string;
  readonly code: unknown;
  readonly param: unknown;
  readonly message: string;
  readonly details: Json;
}> {
  const body = refusal.parse(JSON.parse(await response.text()));
  expect(body.request_id).toBe(response.headers.get("request-id"));
  expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
  const { type, message, details } = body.error;
  const { error_code: code, param } = details;
  return { status: response.status, type, message, details, code, param };
}

/** A model that Anthropic serves itself, and one of another provider. */
const MODELS = JSON.stringify([
  {
    id: "mock/claude",
    kind: "chat",
    context: 200_000,
    max_output: 4096,
    abilities: ["tools", "vision"],
    price: { input: 1_000_000, cached: 100_000, cache_write: 1_250_000, output: 5_000_000 },
    routes: [{ provider: "anthropic", upstream_id: "claude-sonnet-4-5" }],
  },
  {
    id: "mock/newest",
    kind: "chat",
    context: 200_000,
    max_output: 4096,
    abilities: ["tools", "vision"],
    price: { input: 1_000_000, output: 5_000_000 },
    routes: [{ provider: "anthropic", upstream_id: "claude-sonnet-5" }],
  },
  {
    id: "mock/both",
    kind: "chat",
    context: 200_000,
    max_output: 4096,
    abilities: ["tools", "vision"],
    price: { input: 1_000_000, output: 5_000_000 },
    routes: [
      { provider: "anthropic", upstream_id: "claude-sonnet-4-5" },
      { provider: "mock", upstream_id: "up-chat" },
    ],
  },
]);
export const ANTHROPIC_SECRET = "anthropic.canary.secret";

/** Like `mockUpstream`, with Anthropic as an additional provider. */
export function mockAnthropic(answer: (call: UpstreamCall) => Response | Promise<Response>): {
  readonly calls: readonly UpstreamCall[];
  readonly bindings: Env;
} {
  const { calls } = mockUpstream(answer);
  const bindings = upstreamBindings({
    MODELS,
    RESIDENCY: "relaxed",
    ANTHROPIC_API_KEY: ANTHROPIC_SECRET,
  });
  return { calls, bindings };
}
