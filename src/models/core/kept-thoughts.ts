import { parseJsonText } from "../../shared/http/json-text.ts";
import { hash32 } from "../../shared/hash.ts";
import { fromBase64, toBase64Url } from "./base64.ts";
import { isObject, listOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./provider.ts";

/**
 * What a model's next turn needs of this one and a client's dialect has no field for: the core's
 * `reasoning_details`, and the `extra_content` of calls by their id.
 */
export type KeptThoughts = {
  readonly details: readonly JsonObject[];
  readonly extras: Readonly<Record<string, JsonObject>>;
};

/** First the version, last a check of what stands between: it finds damage, it is no secret. */
const VERSION = "tk1";
/** It is a part of a body of at most 20 MB; no maker's reasoning of one turn comes near. */
const CHARACTERS_MAX = 4_000_000;

/** Whether there is nothing to keep. */
export function isEmpty({ details, extras }: KeptThoughts): boolean {
  return details.length === 0 && Object.keys(extras).length === 0;
}

/**
 * A text that a client keeps and sends back. It is opaque, not secret: its parts are signed or encrypted by the
 * model's maker, who refuses what was changed.
 */
export function sealed({ details, extras }: KeptThoughts): string {
  const json = JSON.stringify({ details, extras });
  const payload = toBase64Url(new TextEncoder().encode(json));
  return `${VERSION}.${payload}.${checkOf(payload)}`;
}

/** Whether a text is ours, sound or not. */
export function isSealed(text: string): boolean {
  return text.startsWith(`${VERSION}.`);
}

/** What `sealed` kept; null for another's text, a damaged or an oversized one. Never throws. */
export function unsealed(text: string): KeptThoughts | null {
  if (text.length > CHARACTERS_MAX) return null;
  const [version, payload, check, rest] = text.split(".", 4);
  if (version !== VERSION || payload === undefined || rest !== undefined) return null;
  if (check !== checkOf(payload)) return null;
  const json = decoded(payload);
  const parsed = json === null ? null : parseJsonText(json);
  if (parsed?.ok !== true) return null;
  const { details, extras } = parsed.value;
  return {
    details: listOf(details)
      .filter(isObject)
      .filter(({ type }) => textOf(type) !== ""),
    extras: Object.fromEntries(
      Object.entries(isObject(extras) ? extras : {}).flatMap(([id, extra]) =>
        isObject(extra) ? [[id, extra]] : [],
      ),
    ),
  };
}

function checkOf(payload: string): string {
  return hash32(payload, 1).toString(36) + hash32(payload, 2).toString(36);
}

function decoded(payload: string): string | null {
  try {
    const bytes = fromBase64(payload.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
