import { distributedHash32 } from "../../shared/hash.ts";
import type { ChatBody } from "../core/core-request.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { PromptSize } from "../core/prompt-size.ts";

/**
 * Minimum tokens of a prompt that most providers cache. A few Claude models cache shorter prompts.
 */
const CACHED_PROMPT_TOKENS_MIN = 1024;
const PROMPT_START_CHARACTERS_MAX = 8192;

/** Seconds that a provider caches a prompt after its last use. Default: five minutes. */
const CACHE_SECONDS_BY_PROVIDER: ReadonlyMap<string, number> = new Map([
  ["deepseek", 3600],
  ["groq", 7200],
  ["openai", 1800],
]);
const CACHE_SECONDS_DEFAULT = 300;
const HOUR_CACHE_SECONDS = 3600;

export function getPromptCacheSeconds(provider: string, { hourCache }: PromptSize): number {
  return hourCache === true
    ? HOUR_CACHE_SECONDS
    : (CACHE_SECONDS_BY_PROVIDER.get(provider) ?? CACHE_SECONDS_DEFAULT);
}

/**
 * Returns a hash that identifies a conversation by its session, its cache key or the start of its
 * prompt. Returns null if prompt caching can't affect the choice of the route.
 */
export function computeConversationHash(
  body: ChatBody,
  { preferences = null, session = null }: ParsedRequest,
  at: {
    readonly model: string;
    readonly region: string;
    readonly routes: number;
    readonly prompt: PromptSize;
  },
): string | null {
  const { model, region, routes, prompt } = at;
  if (routes < 2 || prompt.estimate < CACHED_PROMPT_TOKENS_MIN) return null;
  if (preferences !== null && (preferences.order.length > 0 || preferences.sort !== null)) {
    return null;
  }
  const start = session ?? body.prompt_cache_key ?? conversationStart(body);
  const text = JSON.stringify([region, model, start]);
  return distributedHash32(text, 1).toString(36) + distributedHash32(text, 2).toString(36);
}

function conversationStart({ messages, tools = [] }: ChatBody): readonly unknown[] {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const parts = [tools, ...messages.slice(0, first + 1).map(({ content }) => content ?? null)];
  return parts.map((part) => shortenValue(part));
}

function shortenValue(
  value: unknown,
  budget = { characters: PROMPT_START_CHARACTERS_MAX },
): unknown {
  if (budget.characters <= 0) return 0;
  if (typeof value === "string") {
    const text = value.slice(0, budget.characters);
    budget.characters -= text.length;
    return text.length === value.length ? text : [text, value.length];
  }
  if (value === null || typeof value !== "object") return value;
  return Object.values(value).map((one) => shortenValue(one, budget));
}
