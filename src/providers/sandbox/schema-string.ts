import type { JsonObject } from "../provider.ts";
import { numberOf } from "../json-value.ts";
import { patternText } from "./schema-pattern.ts";

/** Longer strings than this are not made, whatever the schema asks. */
const CHARACTERS_MAX = 10_000;

/** A string for the schema: by its format, else its pattern, else the property's own name, fitted to its length. */
export function schemaString(schema: JsonObject, name: string, variant: number): string {
  const format = FORMATS.get(String(schema["format"]));
  if (format !== undefined) return format(variant);
  const least = Math.min(numberOf(schema["minLength"]) ?? 0, CHARACTERS_MAX);
  const most = Math.min(numberOf(schema["maxLength"]) ?? CHARACTERS_MAX, CHARACTERS_MAX);
  if (typeof schema["pattern"] === "string") {
    const text = patternText(schema["pattern"], least, variant);
    if (text !== null) return text;
  }
  return fitted(variant === 0 ? name : `${name} ${variant + 1}`, least, most);
}

/** Lengths in code points, as JSON schema counts them. What would be cut keeps its end: there variants differ. */
function fitted(text: string, least: number, most: number): string {
  const characters = Array.from(text);
  if (characters.length > most) return most === 0 ? "" : characters.slice(-most).join("");
  return text + "x".repeat(Math.max(0, least - characters.length));
}

const FORMATS: ReadonlyMap<string, (variant: number) => string> = new Map([
  ["date-time", (variant) => `2026-01-${day(variant)}T12:00:00Z`],
  ["date", (variant) => `2026-01-${day(variant)}`],
  ["time", (variant) => `12:00:${two(variant % 60)}Z`],
  ["duration", (variant) => `P${variant + 1}D`],
  ["email", (variant) => `user${variant + 1}@example.com`],
  ["idn-email", (variant) => `user${variant + 1}@example.com`],
  ["hostname", (variant) => `host${variant + 1}.example.com`],
  ["idn-hostname", (variant) => `host${variant + 1}.example.com`],
  ["ipv4", (variant) => `192.0.2.${(variant % 254) + 1}`],
  ["ipv6", (variant) => `2001:db8::${(variant + 1).toString(16)}`],
  ["uri", (variant) => `https://example.com/${variant + 1}`],
  ["iri", (variant) => `https://example.com/${variant + 1}`],
  ["url", (variant) => `https://example.com/${variant + 1}`],
  ["uri-reference", (variant) => `/${variant + 1}`],
  ["iri-reference", (variant) => `/${variant + 1}`],
  ["uri-template", (variant) => `/{id}/${variant + 1}`],
  ["json-pointer", (variant) => `/${variant + 1}`],
  ["relative-json-pointer", (variant) => `${variant}`],
  ["regex", (variant) => `a{${variant + 1}}`],
  ["uuid", (variant) => `00000000-0000-4000-8000-${variant.toString(16).padStart(12, "0")}`],
]);

function day(variant: number): string {
  return two((variant % 31) + 1);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
