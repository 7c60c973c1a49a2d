import { postRequest } from "../core/http-provider.ts";
import type { ProviderProtocol } from "../core/http-provider.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { isObject, listOf, parseObject } from "../core/json-value.ts";
import { anyValue, objectReader } from "../core/shape.ts";
import { isFailure } from "../core/provider.ts";
import type { JsonObject, ProviderFailure, ChatCall } from "../core/provider.ts";
import { sseReader } from "../core/sse-reader.ts";
import { httpFailure } from "../core/upstream-failure.ts";
import { readNativeResponse, readResponsesCompletion } from "../protocols/responses/host-answer.ts";
import { echoTooLarge } from "../protocols/responses/host-echoed.ts";
import { responsesNativeBody, toResponsesApiRequest } from "../protocols/responses/host-request.ts";
import { responseFailure } from "../protocols/responses/host-rules.ts";
import { ResponsesChunkReader, ResponsesNativeReader } from "../protocols/responses/host-stream.ts";
import { CustomerHashes } from "./customer-hashes.ts";

type ResponsesHost = {
  readonly id: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secret?: string;
};

/** Calls OpenAI's Responses API. OpenAI stores nothing: clients send encrypted reasoning back. */
export function responsesProtocol({ id, url, headers, secret }: ResponsesHost): ProviderProtocol {
  const hashes = new CustomerHashes(secret);
  return {
    id,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const isNative = call.native !== undefined;
        const requested = isNative ? responsesNativeBody(call) : toResponsesApiRequest(call);
        if (isFailure(requested)) return requested;
        const echoFailure = call.stream ? null : echoTooLarge(requested);
        if (echoFailure !== null) return echoFailure;
        const { prompt_cache_key: cacheKey, ...body } = requested;
        const fullBody = { ...body, ...(await identityOf(hashes, call, cacheKey)) };
        const accept = call.stream ? "text/event-stream" : "application/json";
        const send = (sent: JsonObject) =>
          postRequest(call, { url, headers: { accept, ...headers }, body: JSON.stringify(sent) });
        return retryWithoutReasoning(await send(fullBody), fullBody, send);
      },
      convertResponse: (raw, { native }) =>
        native === undefined
          ? readResponsesCompletion(raw, secret)
          : readNativeResponse(raw, secret),
    },
    failureInBody: (raw) => {
      const { error, output } = raw;
      return isObject(error) && !Array.isArray(output) ? responseFailure(raw, secret) : null;
    },
    failure: (status, given, bodyText) => httpFailure(status, given, bodyText, secret),
    reader: ({ native }) =>
      sseReader(
        native === undefined ? new ResponsesChunkReader(secret) : new ResponsesNativeReader(secret),
      ),
  };
}

const ERROR_BYTES_MAX = 64 * 1024;
const FOREIGN_REASONING_CODE = "invalid_encrypted_content";

const readType = objectReader({ type: anyValue });
const readErrorCode = objectReader({ error: objectReader({ code: anyValue }) });

type SendResult = Response | ProviderFailure;

async function retryWithoutReasoning(
  response: SendResult,
  body: JsonObject & { readonly input?: unknown },
  send: (body: JsonObject) => Promise<SendResult>,
): Promise<SendResult> {
  if (!(response instanceof Response) || response.status !== 400) return response;
  const input = listOf(body.input);
  const inputWithoutReasoning = input.filter((item) => readType(item).type !== "reasoning");
  if (inputWithoutReasoning.length === input.length) return response;
  const text = (await readBoundedText(response, ERROR_BYTES_MAX)) ?? "";
  if (readErrorCode(parseObject(text)).error.code === FOREIGN_REASONING_CODE) {
    return send({ ...body, input: inputWithoutReasoning });
  }
  return new Response(text, { status: response.status, headers: response.headers });
}

/** Returns `safety_identifier` and `prompt_cache_key`. `cacheKey` is the client's own. */
async function identityOf(
  hashes: CustomerHashes,
  { customer, upstreamId }: ChatCall,
  cacheKey: unknown,
): Promise<JsonObject> {
  if (customer === undefined) return {};
  const [safety_identifier, prompt_cache_key] = await Promise.all([
    hashes.hashUser(customer),
    typeof cacheKey === "string"
      ? hashes.hashCacheKey(customer, cacheKey)
      : hashes.hashModelCacheKey(customer, upstreamId),
  ]);
  return { safety_identifier, prompt_cache_key };
}
