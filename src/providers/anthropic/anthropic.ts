import { baseUrlProblems } from "../built-in.ts";
import type { BuiltIn } from "../built-in.ts";
import { httpProvider, post, trimmedUrl } from "../http-provider.ts";
import type { Wire } from "../http-provider.ts";
import type { Provider, ProviderCall } from "../provider.ts";
import { sseReader } from "../sse-reader.ts";
import { messagesAnswer } from "./answer.ts";
import { claudeRules } from "./claude-rules.ts";
import { eventFailure, messagesFailure } from "./failure.ts";
import { jsonAnswerOf } from "./json-answer.ts";
import { MessagesReader } from "./messages-reader.ts";
import { messagesRequest } from "./request.ts";

const SECRET = "ANTHROPIC_API_KEY";
const BASE_URL = "ANTHROPIC_BASE_URL";

/** A host of the Messages API. */
export type AnthropicHost = {
  /** Ends in the version, e.g. `https://api.anthropic.com/v1`. */
  readonly baseUrl: string;
  readonly secret: string;
  /** Where the model must run, for the models that can be told; null is anywhere. */
  readonly geo: "us" | null;
};

/** Anthropic, live where its key is set. It can promise the US and nowhere else. */
export const ANTHROPIC: BuiltIn = {
  id: "anthropic",
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: ({ region }) => (region === "us" ? ["us", "global"] : ["global"]),
  problems: (config) => baseUrlProblems(config, BASE_URL),
  build: (config) =>
    anthropic({
      baseUrl: config.secret(BASE_URL) ?? "https://api.anthropic.com/v1",
      secret: config.secret(SECRET) ?? "",
      geo: config.region === "us" ? "us" : null,
    }),
};

/** The adapter for the Messages API. */
export function anthropic(host: AnthropicHost): Provider {
  return httpProvider(wireOf(host));
}

function wireOf({ baseUrl, secret, geo }: AnthropicHost): Wire {
  return {
    id: ANTHROPIC.id,
    streamType: "text/event-stream",
    async ask(call) {
      const request = messagesRequest(call, geo);
      if ("reason" in request) return request;
      return post(call, {
        url: `${trimmedUrl(baseUrl)}/messages`,
        headers: {
          accept: call.stream ? "text/event-stream" : "application/json",
          "x-api-key": secret,
          "anthropic-version": "2023-06-01",
          ...(request.beta !== null && { "anthropic-beta": request.beta }),
        },
        body: JSON.stringify(request.body),
      });
    },
    answer: (raw, call) => messagesAnswer(raw, jsonToolOf(call), secret),
    failureInside: (raw) => (raw["type"] === "error" ? eventFailure(raw, secret) : null),
    failure: (status, headers, bodyText) => messagesFailure(status, headers, bodyText, secret),
    reader: (call) => sseReader(new MessagesReader(jsonToolOf(call), secret)),
  };
}

/** The tool that this call's request made of its JSON schema, if it did. */
function jsonToolOf({ body, upstreamId }: ProviderCall): string | null {
  const json = jsonAnswerOf(body, claudeRules(upstreamId));
  return json?.by === "tool" ? json.name : null;
}
