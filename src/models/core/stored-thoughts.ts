import { parseJsonText } from "../../shared/http/json-text.ts";
import { distributedHash32 } from "../../shared/hash.ts";
import { fromBase64, toBase64Url } from "./data-url.ts";
import { isObject, listOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./provider.ts";

/**
 * Reasoning that the model needs in the next turn, for clients whose protocol has no field for it.
 */
export type StoredThoughts = {
  readonly details: readonly JsonObject[];
  readonly extras: Readonly<Record<string, JsonObject>>;
  readonly text: string;
};

export const NO_THOUGHTS: StoredThoughts = { details: [], extras: {}, text: "" };

const FORMAT_VERSION = "tk1";
const CHARACTERS_MAX = 4_000_000;

export function hasNoThoughts({ details, extras, text }: StoredThoughts): boolean {
  return details.length === 0 && Object.keys(extras).length === 0 && text === "";
}

export function joinThoughts(one: StoredThoughts, next: StoredThoughts): StoredThoughts {
  return {
    details: [...one.details, ...next.details],
    extras: { ...one.extras, ...next.extras },
    text: one.text + next.text,
  };
}

function joinDetails(details: readonly JsonObject[]): readonly JsonObject[] {
  const whole: JsonObject[] = [];
  for (const detail of details) {
    const last = whole.at(-1);
    const field = last === undefined ? null : joinableField(last, detail);
    if (last === undefined || field === null) whole.push(detail);
    else {
      const text = textOf(last[field]) + textOf(detail[field]);
      whole.splice(-1, 1, { ...last, ...detail, [field]: text });
    }
  }
  return whole;
}

function joinableField(one: JsonObject, next: JsonObject): "text" | "summary" | null {
  const { type, index } = one;
  const { type: nextType, index: nextIndex } = next;
  if (type !== nextType || typeof index !== "number" || index !== nextIndex) return null;
  if (type === "reasoning.text") return "text";
  return type === "reasoning.summary" ? "summary" : null;
}

/**
 * Serializes reasoning without encryption. Providers sign or encrypt reasoning themselves where
 * necessary.
 */
export function serializeThoughts({ details, extras, text }: StoredThoughts): string {
  const isReadable = details.length === 0 && text !== ""; // `details` include the reasoning text.
  const storedFields = { details: joinDetails(details), extras, ...(isReadable && { text }) };
  const json = JSON.stringify(storedFields);
  const payload = toBase64Url(new TextEncoder().encode(json));
  return `${FORMAT_VERSION}.${payload}.${checksumOf(payload)}`;
}

export function isSerializedThoughts(text: string): boolean {
  return text.startsWith(`${FORMAT_VERSION}.`);
}

/**
 * Parses stored reasoning. Returns null for text that is damaged, too large or not ours. Never
 * throws.
 */
export function parseThoughts(sealedText: string): StoredThoughts | null {
  if (sealedText.length > CHARACTERS_MAX) return null;
  const [version, payload, check, rest] = sealedText.split(".", 4);
  if (version !== FORMAT_VERSION || payload === undefined || rest !== undefined) return null;
  if (check !== checksumOf(payload)) return null;
  const json = decodePayload(payload);
  const parsed = json === null ? null : parseJsonText(json);
  if (parsed?.ok !== true) return null;
  const { details, extras, text } = parsed.value;
  return {
    details: listOf(details)
      .filter(isObject)
      .filter(({ type }) => textOf(type) !== ""),
    extras: Object.fromEntries(
      Object.entries(isObject(extras) ? extras : {}).flatMap(([id, extra]) =>
        isObject(extra) ? [[id, extra]] : [],
      ),
    ),
    text: textOf(text),
  };
}

function checksumOf(payload: string): string {
  return distributedHash32(payload, 1).toString(36) + distributedHash32(payload, 2).toString(36);
}

function decodePayload(payload: string): string | null {
  try {
    const bytes = fromBase64(payload.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
