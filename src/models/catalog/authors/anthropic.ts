import {
  chatModel,
  facts,
  CLAUDE_OLD_FACTOR,
  pricesSeenOn,
  TVR,
  ESTIMATE_FACTOR_MAX,
  TOOLS_TOKENS_MAX,
} from "../entry.ts";
import type { CatalogEntry, DollarPrices, LongPromptRule } from "../entry.ts";
import type { Region } from "../../../shared/regions.ts";

const at = pricesSeenOn("2026-10-24");
const UPLIFT_PERCENT = 10;
const IMAGE_TOKENS = 4_800;
const OLD_IMAGE_TOKENS = 1_600;
const THINKING_FLOOR = 1_024;

type ClaudeOptions = {
  readonly profiles?: readonly Region[];
  readonly longPrompt?: LongPromptRule;
  readonly old?: boolean;
};

/**
 * Anthropic's models (platform.claude.com: pricing, models, data residency). A five-minute cache
 * write costs 1.25 x input. Haiku 4.5 doesn't accept `inference_geo`, and Anthropic may retire it
 * from 2026-10-16 on.
 */
export const ANTHROPIC_MODELS: readonly CatalogEntry[] = [
  claude("fable-5.1", "2026-09-01", [10, 0.25, 12.5, 50], { profiles: ["us"] }),
  claude("fable-5", "2026-06-09", [10, 1, 12.5, 50]),
  claude("opus-5.5", "2026-09-22", [4, 0.2, 5, 20]),
  claude("opus-5", "2026-07-24", [5, 0.5, 6.25, 25]),
  claude("opus-4.8", "2026-05-28", [5, 0.5, 6.25, 25]),
  claude("sonnet-5.5", "2026-09-28", [2, 0.1, 2.5, 10]),
  claude("sonnet-5", "2026-06-30", [2, 0.2, 2.5, 10]),
  claude("sonnet-4.6", "2026-02-17", [3, 0.3, 3.75, 15], { old: true }),
  claude("haiku-5.5", "2026-10-07", [0.1, 0.01, 0.125, 0.5], {
    longPrompt: { above: 100_000, inputPercent: 500, outputPercent: 500 },
  }),
  {
    ...chatModel(
      "anthropic/claude-haiku-4.5",
      "2025-10-15",
      facts(200_000, 64_000, TVR, CLAUDE_OLD_FACTOR, OLD_IMAGE_TOKENS),
      [
        at("anthropic", "claude-haiku-4-5-20251001", [1, 0.1, 1.25, 5]),
        ...bedrock("claude-haiku-4-5-20251001-v1:0", [1, 0.1, 1.25, 5], {}),
      ],
    ),
    thinkingFloor: THINKING_FLOOR,
  },
].map((entry) => Object.assign(entry, { toolsTokens: TOOLS_TOKENS_MAX }));

function claude(
  name: string,
  released: string,
  dollars: DollarPrices,
  more: ClaudeOptions = {},
): CatalogEntry {
  const upstreamId = `claude-${name.replace(".", "-")}`;
  const tokens =
    more.old === true
      ? ([CLAUDE_OLD_FACTOR, OLD_IMAGE_TOKENS] as const)
      : ([ESTIMATE_FACTOR_MAX, IMAGE_TOKENS] as const);
  return chatModel(
    `anthropic/claude-${name}`,
    released,
    facts(1_000_000, 128_000, TVR, ...tokens),
    [
      at("anthropic", upstreamId, dollars, {
        regions: ["global", "us"],
        uplift: UPLIFT_PERCENT,
        ...longPromptField(more),
      }),
      ...bedrock(upstreamId, dollars, more),
    ],
  );
}

function bedrock(name: string, dollars: DollarPrices, more: ClaudeOptions) {
  return (more.profiles ?? (["eu", "us"] as const)).map((region) =>
    at("bedrock", `${region}.anthropic.${name}`, dollars, {
      regions: [region],
      uplift: UPLIFT_PERCENT,
      ...longPromptField(more),
    }),
  );
}

function longPromptField({ longPrompt }: ClaudeOptions): Pick<ClaudeOptions, "longPrompt"> {
  return longPrompt === undefined ? {} : { longPrompt };
}
