import { post } from "../http-provider.ts";
import type { Wire } from "../http-provider.ts";
import { isObject } from "../json-value.ts";
import type { JsonObject, ProviderFailure } from "../provider.ts";
import { sseReader } from "../sse-reader.ts";
import { httpFailure } from "../upstream-failure.ts";
import { nativeAnswer, responsesAnswer } from "./answer.ts";
import { nativeRequest, responsesRequest } from "./request.ts";
import { responseFailure } from "./rules.ts";
import { ChunkReader, NativeReader } from "./stream.ts";

/** A host that speaks OpenAI's Responses. */
export type ResponsesHost = {
  readonly id: string;
  /** Where it is asked. */
  readonly url: string;
  /** What lets us in. */
  readonly headers: Readonly<Record<string, string>>;
  /** The key in it, which errors may quote. */
  readonly secret?: string;
};

/**
 * OpenAI's Responses API for chat calls: converted from chat and back, or natively where the client speaks
 * it too. Nothing is stored there; reasoning travels to the client and back, encrypted.
 */
export function responsesWire({ id, url, headers, secret }: ResponsesHost): Wire {
  return {
    id,
    streamType: "text/event-stream",
    async ask(call) {
      const isNative = call.native !== undefined;
      const body = isNative ? nativeRequest(call) : responsesRequest(call);
      if (isFailure(body)) return body;
      const accept = call.stream ? "text/event-stream" : "application/json";
      return post(call, { url, headers: { accept, ...headers }, body: JSON.stringify(body) });
    },
    answer: (raw, { native }) =>
      native === undefined ? responsesAnswer(raw, secret) : nativeAnswer(raw, secret),
    failureInside: (raw) =>
      isObject(raw["error"]) && !Array.isArray(raw["output"]) ? responseFailure(raw, secret) : null,
    failure: (status, given, bodyText) => httpFailure(status, given, bodyText, secret),
    reader: ({ native }) =>
      sseReader(native === undefined ? new ChunkReader(secret) : new NativeReader(secret)),
  };
}

function isFailure(body: JsonObject | ProviderFailure): body is ProviderFailure {
  return typeof body["reason"] === "string" && typeof body["kind"] === "string";
}
