import type { ChatBody } from "./core-request.ts";
import { INPUT_REQUEST_RULES } from "./kinds.ts";
import type { ProviderCall, ProviderFailure } from "./provider.ts";

export const JSON_RESPONSE_BYTES_MAX = 20 * 1024 * 1024;
const TOO_LARGE_MESSAGE = `The response is larger than ${JSON_RESPONSE_BYTES_MAX / 1024 / 1024} MB. `;
const TEXT_BYTES = 8;
const LOGPROB_BYTES = 96;

export function estimateResponseBytesPerToken({
  logprobs,
  top_logprobs: tops = 0,
}: ChatBody): number {
  return TEXT_BYTES + (logprobs === true ? LOGPROB_BYTES * (1 + tops) : 0);
}

export function createResponseTooLargeFailure(call: ProviderCall): ProviderFailure {
  const tooLargeFailure = { kind: "refused", reason: "body_too_large" } as const;
  if (call.kind !== "chat") {
    const { advice, param } = INPUT_REQUEST_RULES[call.kind].sizeAdvice;
    return {
      ...tooLargeFailure,
      message: TOO_LARGE_MESSAGE + advice,
      param,
      spent: { usage: null, output: 0 },
    };
  }
  const { n = 1, logprobs } = call.body;
  if (n === 1 && logprobs !== true) return { kind: "retry", reason: "body_too_large" };
  const output = Math.floor(JSON_RESPONSE_BYTES_MAX / estimateResponseBytesPerToken(call.body));
  const message = `${TOO_LARGE_MESSAGE}Request less output, or use a stream.`;
  const param = logprobs === true ? "logprobs" : "n";
  return { ...tooLargeFailure, message, param, spent: { usage: null, output } };
}
