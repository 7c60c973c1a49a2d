import { claudeRules, claudeReasoningFields, thinksAlways } from "../../claude/claude-rules.ts";
import type { ChatBody } from "../../core/core-request.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ConverseOutputFormat } from "./answer-format.ts";
import { bedrockFamilyOf } from "./models.ts";

export type ConverseModelFields = {
  readonly inferenceFields: JsonObject;
  readonly additionalFields: JsonObject;
  readonly sendsThoughts: boolean;
};

type ModelFieldsInput = {
  readonly body: ChatBody;
  readonly stops: readonly string[];
  readonly model: string;
  readonly cap: number;
  readonly format: ConverseOutputFormat;
  readonly mayThink: boolean;
};

export function converseModelFields(input: ModelFieldsInput): ConverseModelFields {
  const { body, stops, model } = input;
  const family = bedrockFamilyOf(model);
  if (family === "claude") return claudeFields(input);
  const additional = reasoningFields(family, model, body.reasoning_effort);
  // GPT models accept neither sampling parameters nor stop sequences.
  const inference = family === "gpt" ? {} : { ...samplingFieldsOf(body), ...stopSequences(stops) };
  return { inferenceFields: inference, additionalFields: additional, sendsThoughts: false };
}

function claudeFields({
  body,
  stops,
  model,
  cap,
  format,
  mayThink,
}: ModelFieldsInput): ConverseModelFields {
  const rules = claudeRules(model);
  const fields = claudeReasoningFields(rules, body.reasoning_effort, cap, mayThink);
  const { thinks, output_config: effort, ...thinking } = fields;
  const output = format.kind === "schema" ? { ...effort, format: format.output } : effort;
  const allSampling = rules.acceptsSampling && !thinks ? samplingFieldsOf(body) : {};
  // The host returns 400 for `temperature` together with `top_p`.
  const compatibleFields =
    "temperature" in allSampling ? { temperature: allSampling.temperature } : allSampling;
  return {
    inferenceFields: { ...compatibleFields, ...stopSequences(stops) },
    additionalFields: { ...thinking, ...(output !== undefined && { output_config: output }) },
    sendsThoughts: thinks && !rules.bindsThoughts,
  };
}

/** The level for each effort. "none" becomes "low" for models that can't turn reasoning off. */
const THREE_LEVELS: ReadonlyMap<unknown, string> = new Map([
  ["none", "low"],
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "high"],
  ["max", "high"],
]);

function reasoningFields(family: string, model: string, effort: unknown): JsonObject {
  const level = THREE_LEVELS.get(effort);
  if (level === undefined) return {};
  if (family === "gpt_oss") return { reasoning_effort: level };
  if (family === "gpt") return { reasoning: { effort } };
  if (!/\bnova-2-/.test(model) || effort === "none") return {};
  // Nova rejects an output cap with the effort "high". Every request has a cap, so "high" becomes
  // "medium".
  const maxReasoningEffort = level === "low" ? "low" : "medium";
  return { reasoningConfig: { type: "enabled", maxReasoningEffort } };
}

export function bedrockIgnoresNoEffort(model: string): boolean {
  const family = bedrockFamilyOf(model);
  return family === "claude" ? thinksAlways(model) : family !== "gpt" && family !== "nova";
}

function samplingFieldsOf({ temperature, top_p: topP }: ChatBody): {
  readonly temperature?: number;
  readonly topP?: number;
} {
  return {
    ...(temperature !== undefined && { temperature: Math.min(temperature, 1) }),
    ...(topP !== undefined && { topP }),
  };
}

function stopSequences(stops: readonly string[]): JsonObject {
  return stops.length === 0 ? {} : { stopSequences: stops };
}
