import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import {
  DEFAULT_TAG_VALUE,
  REQUEST_TAGS_MAX,
  TAG_KEY_PATTERN,
  TAG_KEY_RULE_TEXT,
  findTagValueProblem,
} from "../../shared/tags.ts";
import type { Tags } from "../../shared/tags.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import { isObject } from "../core/json-value.ts";

const TAGS_HEADER = "x-tags";
const GATEWAY_TAGS = "providerOptions.gateway.tags";
const PRINTABLE = /^[\u0020-\u007e]*$/;
/**
 * The field of `metadata` in which Anthropic's clients send the end user. This field is never a
 * tag.
 */
const USER_ID = "user_id";

type RequestTags = { readonly tags: Tags | null; readonly dropped: readonly string[] };
type TagPair = readonly [key: string, value: string, param: string];
type TaggedBody = { readonly metadata?: unknown; readonly providerOptions?: unknown };

/**
 * Returns a request's tags from `x-tags`, `providerOptions.gateway.tags` and `metadata`. Drops
 * `metadata` pairs that aren't valid tags, because OpenAI allows more. Fails with 400 for other
 * invalid tags, and for two values of one key.
 */
export function readRequestTags(body: TaggedBody, header: string | undefined): Result<RequestTags> {
  const headerTags = header === undefined ? success([]) : headerPairs(header);
  if (!headerTags.ok) return headerTags;
  const options = gatewayPairs(body);
  if (!options.ok) return options;
  const tags = new Map<string, string>();
  for (const [key, value, param] of [...headerTags.value, ...options.value]) {
    const problem = tagProblem(key, value) ?? tagConflict(tags, key, value);
    if (problem !== null) return invalid(`${param} ${problem}.`, param);
    tags.set(key, value);
    if (tags.size > REQUEST_TAGS_MAX) {
      return invalid(`${param}: a request can have at most 8 tags.`, param);
    }
  }
  const { metadata } = body;
  if (!isObject(metadata)) return success({ tags: tagsOf(tags), dropped: [] });
  return addMetadataTags(tags, metadata);
}

function addMetadataTags(tags: Map<string, string>, metadata: object): Result<RequestTags> {
  const droppedTags: string[] = [];
  for (const [key, value] of Object.entries(metadata)) {
    if (key === USER_ID) continue;
    const isTag = typeof value === "string" && tagProblem(key, value) === null;
    const param = `metadata.${key}`;
    if (isTag && tagConflict(tags, key, value) !== null) {
      return invalid(
        `${param} has a different value than the tag with the same key in ${TAGS_HEADER}.`,
        param,
      );
    }
    if (isTag && (tags.has(key) || tags.size < REQUEST_TAGS_MAX)) tags.set(key, value);
    else droppedTags.push(param);
  }
  return success({ tags: tagsOf(tags), dropped: droppedTags });
}

function tagsOf(tags: ReadonlyMap<string, string>): Tags | null {
  return tags.size === 0 ? null : Object.fromEntries(tags);
}

function tagProblem(key: string, value: string): string | null {
  return TAG_KEY_PATTERN.test(key)
    ? findTagValueProblem(value)
    : `has a key that ${TAG_KEY_RULE_TEXT}`;
}

function tagConflict(tags: ReadonlyMap<string, string>, key: string, value: string): string | null {
  return (tags.get(key) ?? value) === value ? null : `gives the tag '${key}' two values`;
}

function headerPairs(header: string): Result<readonly TagPair[]> {
  // Client and server could decode non-ASCII characters differently.
  if (!PRINTABLE.test(header)) return invalid(`${TAGS_HEADER} must be plain ASCII.`, TAGS_HEADER);
  if (header.trim() === "") return success([]);
  return success(header.split(",").map((text) => parsePair(text.trim(), TAGS_HEADER)));
}

function parsePair(text: string, param: string): TagPair {
  const at = text.indexOf("=");
  if (at < 0) return [text, DEFAULT_TAG_VALUE, param];
  return [text.slice(0, at).trim(), text.slice(at + 1).trim(), param];
}

function gatewayPairs({ providerOptions }: TaggedBody): Result<readonly TagPair[]> {
  const gateway = fieldOf(providerOptions, "gateway");
  const tags = fieldOf(gateway, "tags") ?? null;
  if (tags === null) return success([]);
  const isList = Array.isArray(tags);
  if (!isList && !isObject(tags)) {
    return invalid(`${GATEWAY_TAGS} must be an object or an array of strings.`, GATEWAY_TAGS);
  }
  const pairs: TagPair[] = [];
  for (const [key, value] of Object.entries(tags)) {
    const param = isList ? `${GATEWAY_TAGS}[${key}]` : `${GATEWAY_TAGS}.${key}`;
    if (typeof value !== "string") return invalid(`${param} must be a string.`, param);
    pairs.push(isList ? parsePair(value, param) : [key, value, param]);
  }
  return success(pairs);
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function addTagsToRequest(
  parsed: ParsedRequest,
  { tags, dropped }: RequestTags,
): ParsedRequest {
  const tagged = tags === null ? parsed : { ...parsed, tags };
  if (dropped.length === 0) return tagged;
  const { native } = parsed;
  return {
    ...tagged,
    dropped: [...parsed.dropped, ...dropped],
    native: native === null ? null : { ...native, dropped: [...native.dropped, ...dropped] },
  };
}
