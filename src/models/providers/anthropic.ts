import { regionRowOf } from "../../shared/regions.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { findBaseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import {
  createHttpProvider,
  sendPostRequest,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { parseObject } from "../core/json-value.ts";
import type { ChatCall, NativeBody, Provider } from "../core/provider.ts";
import { createSseReader } from "../core/frame-reader.ts";
import { readTokenCount } from "../core/openai-usage.ts";
import { readMessagesCompletion } from "../protocols/messages/host-answer.ts";
import { getClaudeRules, thinksAlways, thinksByDefault } from "../claude/claude-rules.ts";
import {
  parseMessagesErrorEvent,
  parseMessagesApiFailure,
} from "../protocols/messages/host-failure.ts";
import {
  chooseJsonOutputMethod,
  toMessagesApiRequest,
} from "../protocols/messages/host-request.ts";
import { MessagesStreamReader } from "../protocols/messages/host-messages-reader.ts";
import {
  requestsOneHourCache,
  readClaudeNativeMessage,
  ClaudeNativeReader,
  toClaudeNativeBody,
} from "../protocols/messages/host-native.ts";
import { addImageParam } from "../protocols/messages/host-messages.ts";

const SECRET = "ANTHROPIC_API_KEY";
const BASE_URL = "ANTHROPIC_BASE_URL";

type AnthropicHost = {
  /** For example `https://api.anthropic.com/v1`. */
  readonly baseUrl: string;
  readonly secret: string;
  /** The region that must process requests, or null for any. Some models don't accept a region. */
  readonly geo: "us" | null;
};

export const ANTHROPIC_PROVIDER: BuiltInProvider = {
  id: "anthropic",
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: ({ region }) =>
    regionRowOf(region).anthropicGeo === null ? ["global"] : [region, "global"],
  problems: (config) => findBaseUrlProblems(config, BASE_URL),
  build: (config) =>
    createAnthropicProvider({
      baseUrl: config.secret(BASE_URL) ?? "https://api.anthropic.com/v1",
      secret: config.secret(SECRET) ?? "",
      geo: regionRowOf(config.region).anthropicGeo,
    }),
};

export function createAnthropicProvider(host: AnthropicHost): Provider {
  return {
    ...createHttpProvider(createProtocol(host)),
    supportsProtocol: (protocol) => protocol === "messages",
    acceptsFiles: true,
    summarizesThoughts: true,
    thinksByDefault,
    ignoresNone: thinksAlways,
    countTokens: (upstreamId, native, signal) => countTokens(host, { upstreamId, native, signal }),
  };
}

function createProtocol({ baseUrl, secret, geo }: AnthropicHost): ProviderHandlers {
  return {
    id: ANTHROPIC_PROVIDER.id,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const request = toClaudeNativeBody(call, geo) ?? toMessagesApiRequest(call, geo);
        if ("reason" in request) return request;
        return sendPostRequest(call, {
          url: `${removeTrailingSlashes(baseUrl)}/messages`,
          headers: {
            accept: call.stream ? "text/event-stream" : "application/json",
            ...headersOf(secret, request.beta),
          },
          body: JSON.stringify(request.body),
        });
      },
      convertResponse: (raw, call) =>
        call.native === undefined
          ? readMessagesCompletion(raw, jsonToolName(call), secret)
          : readClaudeNativeMessage(raw, requestsOneHourCache(call.native.body)),
    },
    failureInBody: (raw) => (raw["type"] === "error" ? parseMessagesErrorEvent(raw, secret) : null),
    failure: (status, headers, bodyText, call) =>
      addImageParam(parseMessagesApiFailure(status, headers, bodyText, secret), call),
    reader: (call) =>
      createSseReader(
        call.native === undefined
          ? new MessagesStreamReader(jsonToolName(call), secret)
          : new ClaudeNativeReader(secret, requestsOneHourCache(call.native.body)),
      ),
  };
}

function headersOf(secret: string, beta: string | null): Readonly<Record<string, string>> {
  return {
    "x-api-key": secret,
    "anthropic-version": "2023-06-01",
    ...(beta !== null && { "anthropic-beta": beta }),
  };
}

function jsonToolName({ body, upstreamId }: ChatCall): string | null {
  const json = chooseJsonOutputMethod(body, getClaudeRules(upstreamId));
  return json?.by === "tool" ? json.name : null;
}

const COUNT_BYTES_MAX = 4096;
const UNCOUNTED_FIELDS = new Set(["max_tokens", "stop_sequences", "temperature", "top_p", "top_k"]);

type CountRequest = {
  readonly upstreamId: string;
  readonly native: NativeBody;
  readonly signal: AbortSignal;
};

async function countTokens(
  { baseUrl, secret }: AnthropicHost,
  { upstreamId, native, signal }: CountRequest,
): Promise<number | null> {
  const body = Object.fromEntries(
    Object.entries(native.body).filter(([field]) => !UNCOUNTED_FIELDS.has(field)),
  );
  try {
    const response = await fetch(`${removeTrailingSlashes(baseUrl)}/messages/count_tokens`, {
      method: "POST",
      redirect: "manual",
      headers: {
        "content-type": "application/json",
        "user-agent": "turnpike",
        ...headersOf(secret, native.headers["anthropic-beta"] ?? null),
      },
      body: JSON.stringify({ ...body, model: upstreamId }),
      signal,
    });
    const text = await readBoundedText(response, COUNT_BYTES_MAX);
    const tokens = response.ok ? readTokenCount(parseObject(text)?.["input_tokens"]) : null;
    return tokens === 0 ? null : tokens;
  } catch {
    return null;
  }
}
