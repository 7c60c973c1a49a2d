import * as z from "zod/mini";
import { findExternalIdProblem } from "./external-id.ts";
import { utf8Bytes } from "./tokens.ts";

export type Tags = Readonly<Record<string, string>>;

export const REQUEST_TAGS_MAX = 8;
const TAG_BYTES_MAX = 64;
/** Maximum tag keys that an organization's daily usage distinguishes. */
const TAG_KEYS_MAX = 4;
/** Maximum combinations of tags per day. Others count as `OTHER_TAG_VALUE`. */
export const TAG_SETS_MAX = 1000;
export const OTHER_TAG_VALUE = "other";
export const DEFAULT_TAG_VALUE = "true";

export const TAG_KEY_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$/;
export const TAG_KEY_RULE_TEXT =
  "must have 1 to 64 letters, digits, '_', '.', '/' or '-', and start with a letter or digit";

export function findTagValueProblem(value: string): string | null {
  if (utf8Bytes(value) > TAG_BYTES_MAX) return `must be at most ${TAG_BYTES_MAX} bytes`;
  return value === "." || value === ".." ? null : findExternalIdProblem(value);
}

/** Returns the tags with the given keys as JSON, in the order of `keys`, or null without any. */
export function declaredTagsToJson(tags: Tags | undefined, keys: readonly string[]): string | null {
  if (tags === undefined) return null;
  const pairs = keys.flatMap((key) => {
    const value = Object.hasOwn(tags, key) ? tags[key] : undefined;
    return value === undefined ? [] : [[key, value] as const];
  });
  return pairs.length === 0 ? null : JSON.stringify(Object.fromEntries(pairs));
}

/** `sessionTags` are the keys that the session sets. */
type RequestTags = { readonly tags?: Tags; readonly sessionTags?: readonly string[] };

/**
 * Adds the session's tags. They replace the request's tags with the same keys. If there are too
 * many, the request's last tags are dropped.
 */
export function tagsWithSession(
  tags: Tags | undefined,
  session: { readonly tags?: Tags } | undefined,
): RequestTags {
  if (session === undefined) return tags === undefined ? {} : { tags };
  const ownTags = session.tags ?? {};
  const pairs = Object.entries({ ...ownTags, ...tags, ...ownTags }).slice(0, REQUEST_TAGS_MAX);
  return {
    ...(pairs.length > 0 && { tags: Object.fromEntries(pairs) }),
    sessionTags: Object.keys(ownTags),
  };
}

const tagValueSchema = z.string().check(
  z.maxLength(64),
  z.check((context) => {
    const problem = findTagValueProblem(context.value);
    if (problem === null) return;
    context.issues.push({ code: "custom", message: problem, input: context.value });
  }),
);

export const tagsSchema: z.ZodMiniType<Tags> = z
  .record(z.string().check(z.regex(TAG_KEY_PATTERN, TAG_KEY_RULE_TEXT)), tagValueSchema)
  .check(
    z.refine((tags) => Object.keys(tags).length <= REQUEST_TAGS_MAX, "must have at most 8 tags"),
  );

export const tagKeysSchema: z.ZodMiniType<readonly string[]> = z
  .array(z.string().check(z.regex(TAG_KEY_PATTERN, TAG_KEY_RULE_TEXT)))
  .check(
    z.maxLength(TAG_KEYS_MAX),
    z.refine((keys) => new Set(keys).size === keys.length, "must not name a key twice"),
  );
