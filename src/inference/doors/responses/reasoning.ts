import { parseJsonText } from "../../../http/json-text.ts";
import { fromBase64, toBase64Url } from "../../../providers/base64.ts";
import { hash32 } from "../../../lib/hash.ts";
import { isObject, listOf, textOf } from "../../../providers/json-value.ts";
import type { JsonObject } from "../../../providers/provider.ts";

/**
 * What a model's next turn needs of this one and the Responses dialect has no field for: the core's
 * `reasoning_details`, and the `extra_content` of calls by their `call_id`.
 */
export type Kept = {
  readonly details: readonly JsonObject[];
  readonly extras: Readonly<Record<string, JsonObject>>;
};

/** First the version, last a check of what stands between: it finds damage, it is no secret. */
const VERSION = "tk1";
/** An item is a part of a body of at most 20 MB; no maker's reasoning of one turn comes near. */
const CHARACTERS_MAX = 4_000_000;

/**
 * The text of `encrypted_content`, or null where nothing is to be kept. It is opaque, not sealed: its
 * parts are signed or encrypted by the model's maker, who refuses what was changed.
 */
export function sealed({ details, extras }: Kept): string | null {
  const hasExtras = Object.keys(extras).length > 0;
  if (details.length === 0 && !hasExtras) return null;
  const json = JSON.stringify({ details, ...(hasExtras && { extras }) });
  const payload = toBase64Url(new TextEncoder().encode(json));
  return `${VERSION}.${payload}.${checkOf(payload)}`;
}

/** What `sealed` kept; null for another's text, a damaged or an oversized one. Never throws. */
export function unsealed(text: string): Kept | null {
  if (text.length > CHARACTERS_MAX) return null;
  const [version, payload, check, rest] = text.split(".", 4);
  if (version !== VERSION || payload === undefined || rest !== undefined) return null;
  if (check !== checkOf(payload)) return null;
  const json = decoded(payload);
  const parsed = json === null ? null : parseJsonText(json);
  if (parsed?.ok !== true) return null;
  const details = listOf(parsed.value["details"]).filter(isObject);
  const extras = isObject(parsed.value["extras"]) ? parsed.value["extras"] : {};
  return {
    details: details.filter((detail) => textOf(detail["type"]) !== ""),
    extras: Object.fromEntries(
      Object.entries(extras).flatMap(([id, extra]) => (isObject(extra) ? [[id, extra]] : [])),
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
