import { claudeRules } from "../../claude/claude-rules.ts";
import type { HostTag } from "../../core/built-in.ts";

export type BedrockFamily = "claude" | "nova" | "gpt_oss" | "gpt" | "mistral" | "other";

const FAMILIES: readonly (readonly [RegExp, BedrockFamily])[] = [
  [/\banthropic\./, "claude"],
  [/\bamazon\.nova-/, "nova"],
  [/\bopenai\.gpt-oss/, "gpt_oss"],
  [/\bopenai\./, "gpt"],
  [/\bmistral\./, "mistral"],
];

export function bedrockFamilyOf(model: string): BedrockFamily {
  return FAMILIES.find(([pattern]) => pattern.test(model))?.[1] ?? "other";
}

/** Returns how a model can be forced to call a tool (Bedrock API reference, ToolChoice). */
export function toolForcingOf(model: string): "tool" | "any" | "none" {
  const family = bedrockFamilyOf(model);
  if (family === "claude") return claudeRules(model).canForceTools ? "tool" : "none";
  if (family === "nova") return "tool";
  return family === "mistral" ? "any" : "none";
}

const GEOGRAPHY = /^(global|us-gov|us|eu|apac|jp|au|ca|uk|in|il|sa|me|af)\./;

/**
 * Reports whether a model runs only in the guaranteed region. A geography in its name must match
 * the region. ARNs never match, because they don't contain the geography.
 */
export function isWithinRegion(tag: HostTag, model: string): boolean {
  if (model.startsWith("arn:")) return false;
  const [, geography = tag] = GEOGRAPHY.exec(model) ?? [];
  return geography === tag;
}
