import { parseJson, findClosingQuote } from "../exact-json.ts";
import { invalid, success } from "../failure.ts";
import type { Refusal, Result } from "../failure.ts";
import { formatErrorParam } from "../issue-text.ts";

type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Maximum nesting depth. Recursive validators have enough stack for it. */
export const JSON_DEPTH_MAX = 64;
/**
 * Maximum number of values. Real bodies have up to 300,000. 20 MB of `{},{},...` would exceed an
 * isolate's memory.
 */
export const JSON_VALUES_MAX = 1_000_000;
/** Maximum number of member names. More would take seconds of CPU time. */
export const JSON_NAMES_MAX = 100_000;
export const JSON_OBJECT_NAMES_MAX = 10_000;

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BRACKET_OPEN = 91;
const BRACKET_CLOSE = 93;
const BRACE_OPEN = 123;
const BRACE_CLOSE = 125;

/**
 * Parses a JSON object. Fails with 400 for JSON that parsers interpret differently (RFC 8259):
 * duplicate keys, lone surrogates, numbers beyond a double. `__proto__` becomes an ordinary key, so
 * never merge the result into another object.
 */
export function parseJsonText(text: string): Result<JsonObject> {
  const structure = scanStructure(text);
  if (typeof structure === "string") return invalid(structure);
  let value: JsonValue;
  try {
    value = parseJson(text) as JsonValue;
  } catch {
    // V8's error message isn't returned, because it quotes the body.
    return invalid("The request body is not valid JSON.");
  }
  if (!isObject(value)) return invalid("The request body must be a JSON object.");
  const treeCheck = new JsonTreeCheck();
  treeCheck.visit(value);
  if (treeCheck.refusal !== null) return treeCheck.refusal;
  if (treeCheck.tooLarge) {
    const param = formatErrorParam(pathOfInfinity(value) ?? []);
    return invalid("The request body contains a number that is too large.", param);
  }
  // JSON.parse drops duplicate keys, so an object with duplicates has fewer members than its text.
  if (treeCheck.members !== structure.members) {
    return invalid("The request body contains an object with a duplicate key.");
  }
  return success(value);
}

export function countJsonValues(text: string): number {
  const structure = scanStructure(text);
  return typeof structure === "string" ? Infinity : structure.values;
}

/**
 * Counts the members and values of a text, even of invalid JSON. Returns an error message above a
 * limit.
 */
function scanStructure(
  text: string,
): { readonly members: number; readonly values: number } | string {
  let members = 0;
  let values = 0;
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = findClosingQuote(text, at);
        break;
      case COLON:
        members++;
        if (countName(open) > JSON_OBJECT_NAMES_MAX) {
          return `An object in the request body has more than ${JSON_OBJECT_NAMES_MAX} fields.`;
        }
        break;
      case COMMA:
        values++;
        break;
      case BRACE_OPEN:
      case BRACKET_OPEN:
        open.push(0);
        values++;
        if (open.length > JSON_DEPTH_MAX) {
          return `The request body is nested deeper than ${JSON_DEPTH_MAX} levels.`;
        }
        break;
      case BRACE_CLOSE:
      case BRACKET_CLOSE:
        open.pop();
        break;
    }
  }
  return sizeProblem(members, values) ?? { members, values };
}

function sizeProblem(members: number, values: number): string | null {
  if (members > JSON_NAMES_MAX) return `The request body has more than ${JSON_NAMES_MAX} fields.`;
  return values > JSON_VALUES_MAX
    ? `The request body has more than ${JSON_VALUES_MAX} values.`
    : null;
}

function countName(open: number[]): number {
  const names = (open.pop() ?? 0) + 1;
  open.push(names);
  return names;
}

class JsonTreeCheck {
  members = 0;
  tooLarge = false;
  refusal: Refusal | null = null;

  visit(value: JsonValue): void {
    if (typeof value === "string") this.#string(value);
    else if (typeof value === "number") this.#number(value);
    else if (Array.isArray(value)) for (const item of value) this.visit(item);
    else if (isObject(value)) this.#object(value);
  }

  #object(value: JsonObject): void {
    for (const key of Object.keys(value)) {
      this.members++;
      this.#string(key);
      const member = value[key];
      if (member !== undefined) this.visit(member);
    }
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) this.tooLarge = true;
  }

  /**
   * Rejects lone surrogates. UTF-8 encodes all of them as the same character, so two end users
   * could become one.
   */
  #string(value: string): void {
    if (!value.isWellFormed()) {
      this.refusal ??= invalid("The request body contains a string with a lone surrogate.");
    }
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function pathOfInfinity(value: JsonValue): PropertyKey[] | null {
  if (typeof value !== "object" || value === null) {
    return value === Infinity || value === -Infinity ? [] : null;
  }
  const members: Iterable<[PropertyKey, JsonValue]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  for (const [key, member] of members) {
    const path = pathOfInfinity(member);
    if (path !== null) return [key, ...path];
  }
  return null;
}
