import type { JsonObject } from "../provider.ts";
import { hash32 } from "../hash.ts";
import { numberOf } from "../json-value.ts";
import { tokensOf } from "./tokens.ts";

/** Alternatives of every token, in this order; the token itself is left out. */
const OTHERS: readonly string[] =
  " the| a| and| of| to| in| is| that| it| for| on| with| as| was| at| by| be| this| are| or| an".split(
    "|",
  );
const utf8 = new TextEncoder();

/** How many alternatives each token is to show, or null when no logprobs were asked for. */
export function askedLogprobs(body: JsonObject): number | null {
  return body["logprobs"] === true ? (numberOf(body["top_logprobs"]) ?? 0) : null;
}

/** A choice's `logprobs` for a text: one entry for each token, likely ones, always the same. */
export function logprobsOf(text: string, alternatives: number): JsonObject {
  return { content: tokensOf(text).map((token) => tokenEntry(token, alternatives)), refusal: null };
}

function tokenEntry(token: string, alternatives: number): JsonObject {
  const logprob = -(hash32(token) % 500) / 1000; // e^-0.5 = 0.61: the likeliest token in any case
  const top = [entry(token, logprob)];
  const others = OTHERS.filter((other) => other !== token);
  for (const other of others.slice(0, Math.max(0, alternatives - 1))) {
    top.push(entry(other, -2 - top.length - (hash32(token + other) % 1000) / 1000));
  }
  return { ...entry(token, logprob), top_logprobs: top.slice(0, alternatives) };
}

function entry(token: string, logprob: number): JsonObject {
  return { token, logprob: logprob + 0, bytes: [...utf8.encode(token)] };
}
