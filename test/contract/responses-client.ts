import { afterEach, expect, vi } from "vitest";
import { eventsOf, followResponse } from "../protocols/responses/follow.ts";
import type { Account as Folded } from "../protocols/responses/follow.ts";
import { response as responseSchema } from "../protocols/responses/sdk-schemas.ts";
import type { AnyResponse } from "../protocols/responses/sdk-schemas.ts";
import {
  callItem,
  HELLO,
  reasoningItem,
  scenario,
  textItem,
} from "../fixtures/responses-replies.ts";
import { CANARY_TEXT } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";
import { mockUpstream, upstreamBindings } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

export const HOST = "https://responses.upstream.test/v1";
const entry = (id: string, base_url: string, profile: string) => ({
  id,
  base_url,
  profile,
  secret: "MOCK_API_KEY",
  regions: ["eu"],
});
const model = (id: string, ...routes: object[]) => ({
  id: `mock/${id}`,
  kind: "chat",
  context: 128_000,
  max_output: 4096,
  abilities: ["tools", "vision", "reasoning"],
  price: { input: 1_000_000, cached: 500_000, output: 2_000_000 },
  routes,
});
const OWN = { provider: "own", upstream_id: "gpt-6-sol" };
const OLD = { provider: "own", upstream_id: "gpt-4.1" };
const OTHER = { provider: "other", upstream_id: "up-chat" };

/** Returns OpenAI, and a provider that only supports chat. */
export function mockOpenAi(answer: (call: UpstreamCall) => Response) {
  const { calls } = mockUpstream(answer);
  const bindings = upstreamBindings({
    PROVIDERS: JSON.stringify([
      entry("own", HOST, "openai"),
      entry("other", "https://chat.upstream.test/v1", "generic"),
    ]),
    MODELS: JSON.stringify([
      model("own", OWN),
      model("old", OLD),
      model("both", OWN, OTHER),
      model("other", OTHER),
    ]),
  });
  return { calls, bindings };
}

export const replied = ({ status = 200, headers, body }: RawReply): Response =>
  new Response(body as string, { status, ...(headers !== undefined && { headers }) });

/** Returns the same response, each event sent when the previous one was read. */
export function replyInPieces({ headers, body }: RawReply): Response {
  const pieces = String(body).split(/(?<=\n\n)/);
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(piece));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(source, { ...(headers !== undefined && { headers }) });
}

/** Sends "Hello there" to `mock/own` by POST /v1/responses, unless the fields differ. */
export function postResponse(
  key: string,
  fields: Record<string, unknown>,
  options: Pick<Sending, "headers" | "bindings">,
): Promise<Response> {
  const body = { model: "mock/own", input: "Hello there", ...fields };
  return send("/v1/responses", { key, body, ...options });
}

/** Returns the response of a 200, checked against the SDK's types. */
export async function responseOf(response: Response): Promise<AnyResponse> {
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  expect(text).not.toContain(CANARY_TEXT);
  return responseSchema.parse(JSON.parse(text));
}

/** Returns the response of a stream, joined as the strictest client does. */
export async function streamedResponseOf(response: Response): Promise<Folded> {
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).not.toContain("obfuscation");
  expect(text).not.toContain("68ab4d9"); // the chunks have the response's IDs
  return followResponse(eventsOf(text));
}

/** 8 input tokens at 1, 4 cached at a half, and 3 output tokens at 2 micro-credits */
export const COST = 8 + 2 + 6;
export const SAID = scenario([
  reasoningItem(["Let me ", "think."]),
  textItem(HELLO),
  callItem("call_1", "f", ["{}"]),
]);
export const INCLUDE = ["reasoning.encrypted_content"];
export const SHOWN = { reasoning: { summary: "auto" }, include: INCLUDE };
