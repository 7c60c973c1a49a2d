import type { ChatBody } from "./core-request.ts";
import { INPUT_KINDS } from "./kinds.ts";
import type { ProviderCall, ProviderFailure } from "./provider.ts";

/** An answer that is given whole has no more. */
export const JSON_BYTES_MAX = 20 * 1024 * 1024;
const TOO_LARGE = `The answer is larger than ${JSON_BYTES_MAX / 1024 / 1024} MB: `;
/** Bytes of a token in JSON: of its text, which has four or five of them; and of it or an alternative among log probabilities. */
const TEXT_BYTES = 8;
const LOGPROB_BYTES = 96;

/** What a chat asks to be told of each token, in bytes of JSON: more than most take. */
export function tokenBytes({ logprobs, top_logprobs: tops = 0 }: ChatBody): number {
  return TEXT_BYTES + (logprobs === true ? LOGPROB_BYTES * (1 + tops) : 0);
}

/** The failure of an answer that is too large to be held; what was asked for can be too large. */
export function tooLarge(call: ProviderCall): ProviderFailure {
  const refused = { kind: "refused", reason: "body_too_large" } as const;
  if (call.kind !== "chat") {
    const { advice, param } = INPUT_KINDS[call.kind].smaller;
    return { ...refused, message: TOO_LARGE + advice, param, spent: { usage: null, output: 0 } };
  }
  const { n = 1, logprobs } = call.body;
  // no text of one choice is so long: the host has gone astray
  if (n === 1 && logprobs !== true) return { kind: "retry", reason: "body_too_large" };
  const output = Math.floor(JSON_BYTES_MAX / tokenBytes(call.body));
  const message = `${TOO_LARGE}ask for less, or for it as a stream.`;
  const param = logprobs === true ? "logprobs" : "n";
  return { ...refused, message, param, spent: { usage: null, output } };
}
