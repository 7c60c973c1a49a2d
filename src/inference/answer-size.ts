import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { JSON_BYTES_MAX, tokenBytes } from "../core/http-provider.ts";
import type { ChatBody } from "../core/core-request.ts";
import type { Asked } from "../core/door.ts";
import type { OutputCap } from "./hold-bounds.ts";

/** A response's stream says log probabilities once more in each of so many events at its end. */
const RESPONSES_REPEATS = 4;

/**
 * The output cap of a chat whose answer can be held: one that is given whole, and log probabilities in a response's
 * stream, which repeats them at its end. One that nobody asked for is lowered. Failures: 400 for what was asked.
 */
export function capThatFits(cap: OutputCap, body: ChatBody, asked: Asked): Result<OutputCap> {
  const isMany = cap.choices > 1 || body.logprobs === true;
  const bytesMax = isMany ? heldBytesMax(body, asked) : null;
  if (bytesMax === null) return success(cap);
  const most = Math.floor(bytesMax / tokenBytes(body) / cap.choices);
  if (cap.whole <= most) return success(cap);
  if (!cap.isAsked && cap.least <= most) return success({ ...cap, whole: most });
  const times = cap.choices > 1 ? `${cap.choices} times ` : "";
  const message = `An answer of ${times}${cap.whole} tokens, as asked for, is too large to be held: ask for at most ${most} tokens`;
  return body.logprobs === true
    ? invalid(`${message}, or fewer 'top_logprobs'.`, "logprobs")
    : invalid(`${message}, fewer choices, or a stream.`, "n");
}

/** What of an answer is held may have so many bytes; null where it is passed on as it comes. */
function heldBytesMax({ logprobs }: ChatBody, { reply, native }: Asked): number | null {
  if (reply.kind === "json") return JSON_BYTES_MAX;
  const isRepeated = logprobs === true && native?.wire === "responses";
  return isRepeated ? JSON_BYTES_MAX / RESPONSES_REPEATS : null;
}
