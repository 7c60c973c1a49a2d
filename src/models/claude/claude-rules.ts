import type { RequestedTools } from "../core/conversation.ts";
import type { JsonObject } from "../core/provider.ts";

/** The rules of a Claude model, identical on all hosts (platform.claude.com, migration guides). */
export type ClaudeRules = {
  /** The thinking mode. "always" is adaptive thinking that can't be turned off. */
  readonly thinking: "none" | "budget" | "adaptive" | "always";
  readonly thinksByDefault: boolean;
  readonly thinkingOffType: "disabled" | "between_tools";
  /** The accepted values of `output_config.effort`, lowest first. The list can be empty. */
  readonly efforts: readonly string[];
  /** Whether the model accepts `temperature` and `top_p` while thinking is off. */
  readonly acceptsSampling: boolean;
  /**
   * Whether the model accepts the `tool_choice` types `any` and `tool`. Otherwise, the host returns
   * 400.
   */
  readonly canForceTools: boolean;
  readonly jsonSchema: "native" | "tool";
  /** Whether the model accepts `inference_geo`. If not, the field causes a 400. */
  readonly acceptsInferenceGeo: boolean;
  /** Whether an edited message invalidates later thinking blocks ("preserved thinking"). */
  readonly bindsThoughts: boolean;
};

/**
 * Matches `claude-sonnet-5-5`, `eu.anthropic.claude-haiku-4-5-20251001-v1:0` and
 * `claude-3-7-sonnet-20250219`. Never reads a date as a minor version.
 */
const MODEL_NAME = /claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;
const FOUR_EFFORTS = ["low", "medium", "high", "max"];
const ALL_EFFORTS = ["low", "medium", "high", "xhigh", "max"];

/** Returns the rules of a Claude model. Returns the newest rules for a name without a version. */
export function getClaudeRules(model: string): ClaudeRules {
  const [, family = "", major, minor = "0"] = MODEL_NAME.exec(model) ?? [];
  const version = major === undefined ? Infinity : Number(major) * 100 + Number(minor);
  const alwaysThinks = family === "fable" || family === "mythos" || family === "";
  const bindsThoughts = version >= (alwaysThinks ? 501 : 505);
  return {
    thinking: thinkingOf(family, version),
    thinksByDefault: version >= 500,
    thinkingOffType: family === "sonnet" && bindsThoughts ? "between_tools" : "disabled",
    efforts: effortsOf(version),
    acceptsSampling: version <= 406,
    canForceTools: !bindsThoughts || family === "haiku",
    jsonSchema: version >= 405 ? "native" : "tool",
    acceptsInferenceGeo: version >= 406,
    bindsThoughts: bindsThoughts,
  };
}

/**
 * Reports whether a model thinks by default. Returns true for models that aren't from Anthropic.
 */
export function thinksByDefault(model: string): boolean {
  return !model.includes("claude-") || getClaudeRules(model).thinksByDefault;
}

/** Reports whether a Claude model thinks even if the client sends the effort "none". */
export function thinksAlways(model: string): boolean {
  return model.includes("claude-") && getClaudeRules(model).thinking === "always";
}

function effortsOf(version: number): readonly string[] {
  if (version < 406) return [];
  return version === 406 ? FOUR_EFFORTS : ALL_EFFORTS;
}

function thinkingOf(family: string, version: number): ClaudeRules["thinking"] {
  if (version < 307 || (family === "haiku" && version < 405)) return "none";
  if (version < 406) return "budget";
  if (version < 500) return "adaptive";
  const canStop = family === "sonnet" || family === "haiku" || (family === "opus" && version < 505);
  return canStop ? "adaptive" : "always";
}

/** Returns Claude's own `tool_choice`. */
export function toClaudeToolChoice(choice: Exclude<RequestedTools["choice"], "none">): JsonObject {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : "auto" };
}

export type ClaudeReasoningFields = {
  readonly thinking?: JsonObject;
  readonly output_config?: { readonly effort: string };
  /** Whether the model thinks. If so, requests contain earlier thoughts but no sampling fields. */
  readonly thinks: boolean;
};

const BUDGET_PERCENT: Readonly<Record<string, number>> = {
  minimal: 2,
  low: 10,
  medium: 30,
  high: 60,
  xhigh: 90,
  max: 90,
};
const BUDGET_TOKENS_MIN = 1024;

/**
 * Returns the request fields for a `reasoning_effort`. Thinking counts toward `cap`. `mayThink`
 * must be false if the host would reject thinking with 400: if a tool is forced, or if a model with
 * a thinking budget called a tool without thinking.
 */
export function toClaudeReasoningFields(
  rules: ClaudeRules,
  effort: unknown,
  cap: number,
  mayThink: boolean,
): ClaudeReasoningFields {
  const knownEffort =
    typeof effort === "string" && Object.hasOwn(BUDGET_PERCENT, effort) ? effort : null;
  if (rules.thinking === "none") return { thinks: false };
  if (rules.thinking === "budget") return budgetThinking(knownEffort, cap, mayThink);
  if (rules.thinking === "adaptive" && (effort === "none" || !mayThink)) {
    return withoutThinking(rules, knownEffort);
  }
  return adaptiveThinking(rules, effort === "none" ? "low" : knownEffort);
}

function adaptiveThinking(rules: ClaudeRules, effort: string | null): ClaudeReasoningFields {
  if (effort === null && !rules.thinksByDefault) return { thinks: false };
  // The newest models omit thinking text by default.
  const thinking = { type: "adaptive", display: "summarized" };
  return { thinking, ...outputConfigOf(rules, effort), thinks: true };
}

function withoutThinking(rules: ClaudeRules, effort: string | null): ClaudeReasoningFields {
  const cappedEffort = effort === "xhigh" || effort === "max" ? "high" : effort;
  return {
    ...(rules.thinksByDefault && { thinking: { type: rules.thinkingOffType } }),
    ...outputConfigOf(rules, cappedEffort),
    thinks: false,
  };
}

function budgetThinking(
  effort: string | null,
  cap: number,
  mayThink: boolean,
): ClaudeReasoningFields {
  if (effort === null || !mayThink || cap <= BUDGET_TOKENS_MIN) return { thinks: false };
  const tokenShare = Math.floor((cap * (BUDGET_PERCENT[effort] ?? 0)) / 100);
  const budget = Math.max(BUDGET_TOKENS_MIN, tokenShare);
  return { thinking: { type: "enabled", budget_tokens: budget }, thinks: true };
}

function outputConfigOf(
  { efforts }: ClaudeRules,
  effort: string | null,
): Pick<ClaudeReasoningFields, "output_config"> {
  if (effort === null) return {};
  const hostEffort = effort === "minimal" ? "low" : effort;
  return { output_config: { effort: efforts.includes(hostEffort) ? hostEffort : "max" } };
}
