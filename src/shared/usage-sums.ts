import { micros } from "./money.ts";
import type { Micros } from "./money.ts";
import { sumPromptTokens } from "./usage.ts";
import type { Usage } from "./usage.ts";

type TokenSum = {
  readonly shown: string;
  readonly of: (usage: Usage) => number;
  /**
   * SQL expression that reads the count from a settled row (`DetailList` in generation-json.ts).
   */
  readonly inRow: string;
  readonly column: string;
};

export const TOKEN_COUNT_FIELDS = {
  promptTokens: {
    shown: "prompt_tokens",
    of: sumPromptTokens,
    inRow: "prompt_tokens",
    column: "prompt_tokens",
  },
  cachedTokens: {
    shown: "cached_tokens",
    of: ({ cacheRead }: Usage) => cacheRead,
    inRow: "detail ->> '$[1]'",
    column: "cached",
  },
  completionTokens: {
    shown: "completion_tokens",
    of: ({ output }: Usage) => output,
    inRow: "completion_tokens",
    column: "completion_tokens",
  },
} as const satisfies Readonly<Record<string, TokenSum>>;
type TokenName = keyof typeof TOKEN_COUNT_FIELDS;
export type TokenCounts = Readonly<Record<TokenName, number>>;
export type UsageAmounts = TokenCounts & { readonly requests: number; readonly costMicro: Micros };

const isToken = (name: string): name is TokenName => name in TOKEN_COUNT_FIELDS;
const TOKEN_NAMES = Object.keys(TOKEN_COUNT_FIELDS).filter(isToken);

/** Returns an object with a value for each kind of token. */
export function mapTokenNames(valueOf: (name: TokenName, sum: TokenSum) => number): TokenCounts {
  const counts = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 } satisfies TokenCounts;
  for (const name of TOKEN_NAMES) counts[name] = valueOf(name, TOKEN_COUNT_FIELDS[name]);
  return counts;
}

export function tokenCountsOf(usage: Usage): TokenCounts {
  return mapTokenNames((_, sum) => sum.of(usage));
}

function addTokenCounts(one: TokenCounts, other: TokenCounts): TokenCounts {
  return mapTokenNames((name) => one[name] + other[name]);
}

export const NO_USAGE_AMOUNTS: UsageAmounts = {
  requests: 0,
  ...mapTokenNames(() => 0),
  costMicro: micros(0),
};

export function addUsageAmounts(one: UsageAmounts, other: UsageAmounts): UsageAmounts {
  return {
    requests: one.requests + other.requests,
    ...addTokenCounts(one, other),
    costMicro: micros(one.costMicro + other.costMicro),
  };
}

export function tokenColumnsSql(expressionOf: (sum: TokenSum) => string): string {
  return TOKEN_NAMES.map((name) => `${expressionOf(TOKEN_COUNT_FIELDS[name])} AS ${name}`).join(
    ", ",
  );
}

export const TOKEN_COLUMNS: readonly string[] = Object.values(TOKEN_COUNT_FIELDS).map(
  ({ column }) => column,
);

export function listTokenCounts(counts: TokenCounts): readonly number[] {
  return TOKEN_NAMES.map((name) => counts[name]);
}

export function usageAmountsView(amounts: UsageAmounts) {
  return {
    requests: amounts.requests,
    [TOKEN_COUNT_FIELDS.promptTokens.shown]: amounts.promptTokens,
    [TOKEN_COUNT_FIELDS.cachedTokens.shown]: amounts.cachedTokens,
    [TOKEN_COUNT_FIELDS.completionTokens.shown]: amounts.completionTokens,
    cost_micro: amounts.costMicro,
  };
}
