import { listOf, objectOf } from "../json-value.ts";
import type { JsonObject } from "../provider.ts";
import type { Asked } from "./converse-messages.ts";
import type { Family } from "./models.ts";

/** Five minutes: an hour is priced apart. */
const CACHE_POINT = { cachePoint: { type: "default" } };

/**
 * What is asked with one cache point (Bedrock user guide, prompt caching) where the client wants its prompt
 * cached: Claude's after the last thing that the user said, so that the next turn finds all before it;
 * Nova's after the instructions, where it is sure to be taken.
 */
export function withCachePoint(asked: Asked, family: Family, body: JsonObject): Asked {
  const wantsCache = FIELDS.some((field) => body[field] !== undefined);
  if (!wantsCache) return asked;
  if (family === "nova" && asked.system !== undefined) {
    return { ...asked, system: [...asked.system, CACHE_POINT] };
  }
  if (family !== "claude") return asked;
  const last = asked.messages.findLastIndex(({ role }) => role === "user");
  const messages = asked.messages.map((message, index) =>
    index === last ? { ...message, content: [...message.content, CACHE_POINT] } : message,
  );
  return { ...asked, messages };
}

/** Whether a request has a cache point of ours. */
export function hasCachePoint({ system, messages }: JsonObject): boolean {
  const contents = listOf(messages).flatMap((message) => listOf(objectOf(message)["content"]));
  return [...listOf(system), ...contents].includes(CACHE_POINT);
}

const FIELDS = ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"];
