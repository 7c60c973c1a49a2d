import { NO_USAGE } from "../../../src/shared/usage.ts";
import type {
  ParsedRequest,
  ResponseHead,
  Receipt,
} from "../../../src/models/core/endpoint-adapter.ts";
import { responsesEndpoint } from "../../../src/models/endpoints/responses.ts";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import type { Delta } from "../../../src/models/core/chunk.ts";
import { eventsOf, followResponse } from "./follow.ts";
import type { Account } from "./follow.ts";
import { response } from "./sdk-schemas.ts";
import type { AnyResponse } from "./sdk-schemas.ts";

const OWN = "0123456789abcdefABCDEFGH";
export const HEAD: ResponseHead = {
  id: `resp_${OWN}`,
  model: "openai/gpt-6",
  created: 1_790_000_000,
  promptTokens: 9,
  keeps: false,
};
export const RECEIPT: Receipt = {
  ...HEAD,
  provider: "openai",
  ended: 1_790_000_002,
  usage: { ...NO_USAGE, input: 7, cacheRead: 2, output: 5, reasoning: 1 },
  costMicro: 42,
  estimated: false,
  finishReason: "stop",
  capLoweredByMoney: false,
};
export const BODY = {
  model: "openai/gpt-6",
  input: "Hi",
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
  tools: [
    { type: "function", name: "plain", parameters: { type: "object" } },
    { type: "custom", name: "patch" },
    {
      type: "namespace",
      name: "files",
      tools: [
        { type: "function", name: "read" },
        { type: "custom", name: "write" },
      ],
    },
  ],
};

export function requestOf(body: object): ParsedRequest {
  const parsed = responsesEndpoint.parse(body, { header: () => undefined, query: () => undefined });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  return parsed.value;
}

export function json(answer: JsonObject, receipt = RECEIPT, body: object = BODY): AnyResponse {
  const { reply } = requestOf(body);
  if (reply.kind !== "json") throw new Error("not JSON");
  return response.parse(JSON.parse(JSON.stringify(reply.json(answer, receipt))));
}

export type Piece = JsonObject | string;

/** Returns a stream of deltas. A text repeats the last chunk with it. */
export function streamed(
  deltas: readonly Piece[],
  receipt = RECEIPT,
  body: object = BODY,
): Account {
  return followResponse(eventsOf(textOf(deltas, receipt, body)));
}

export function textOf(deltas: readonly Piece[], receipt: Receipt, body: object): string {
  const { writer, text } = startStream(deltas, body);
  return text + writer.end(receipt);
}

export function startStream(deltas: readonly Piece[], body: object = BODY) {
  const { reply } = requestOf({ ...body, stream: true });
  if (reply.kind !== "stream") throw new Error("not a stream");
  const writer = reply.stream(HEAD);
  let text = writer.begin(null);
  for (const delta of deltas) {
    if (typeof delta === "string") text += writer.text(0, JSON.stringify(delta));
    else {
      const { logprobs = null, ...rest } = delta;
      const choice = { index: 0, delta: rest as Delta, logprobs: logprobs as JsonObject | null };
      text += writer.chunk({ choices: [{ ...choice, finish_reason: null }] });
    }
  }
  return { writer, text };
}

export const completion = (message: JsonObject, logprobs: unknown = null): JsonObject => ({
  choices: [{ index: 0, message, logprobs, finish_reason: "stop" }],
});

export const types = (text: string): string[] =>
  eventsOf(text).map(({ type }) => type.replace("response.", ""));
export const call = (index: number, name: string, args: string, id = `call_${index}`) => ({
  tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }],
});
export const more = (index: number, args: string) => ({
  tool_calls: [{ index, function: { arguments: args } }],
});
