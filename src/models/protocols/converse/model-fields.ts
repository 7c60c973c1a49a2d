import {
  getClaudeRules,
  toClaudeReasoningFields,
  thinksAlways,
} from "../../claude/claude-rules.ts";
import type { DataLocation } from "../../core/built-in.ts";
import { toClaudeSchema } from "../../claude/json-schema.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { chooseOutputToolName, readOutputFormat } from "../../core/conversation.ts";
import type { JsonObject, ChatCall } from "../../core/provider.ts";

export type BedrockModelFamily = "claude" | "nova" | "gpt_oss" | "gpt" | "mistral" | "other";

const FAMILIES: readonly (readonly [RegExp, BedrockModelFamily])[] = [
  [/\banthropic\./, "claude"],
  [/\bamazon\.nova-/, "nova"],
  [/\bopenai\.gpt-oss/, "gpt_oss"],
  [/\bopenai\./, "gpt"],
  [/\bmistral\./, "mistral"],
];

export function getBedrockModelFamily(model: string): BedrockModelFamily {
  return FAMILIES.find(([pattern]) => pattern.test(model))?.[1] ?? "other";
}

/** Returns the `toolChoice` type that forces the model to call a tool, or "none". */
export function getForcingToolChoice(model: string): "tool" | "any" | "none" {
  const family = getBedrockModelFamily(model);
  if (family === "claude") return getClaudeRules(model).canForceTools ? "tool" : "none";
  if (family === "nova") return "tool";
  return family === "mistral" ? "any" : "none";
}

const GEOGRAPHY = /^(global|us-gov|us|eu|apac|jp|au|ca|uk|in|il|sa|me|af)\./;

/**
 * Reports whether a model runs only in the guaranteed region. A geography in its name must match
 * the region. An ARN never matches, because ARNs contain no geography.
 */
export function isWithinRegion(tag: DataLocation, model: string): boolean {
  if (model.startsWith("arn:")) return false;
  const [, geography = tag] = GEOGRAPHY.exec(model) ?? [];
  return geography === tag;
}

export type ConverseOutputFormat =
  | { readonly kind: "text" }
  | { readonly kind: "schema"; readonly output: JsonObject }
  /** Forces the model to call a tool with this schema. The call's input becomes the output. */
  | { readonly kind: "tool"; readonly schema: JsonObject; readonly name: string }
  | { readonly kind: "told"; readonly words: string };

const TEXT_FORMAT: ConverseOutputFormat = { kind: "text" };

/**
 * Returns the way to request the output format. Bedrock accepts a schema only for Claude 4.5 and
 * 4.6. Most models and the newest Claude models can't be forced to call a tool.
 */
export function chooseConverseOutputFormat({ body, upstreamId }: ChatCall): ConverseOutputFormat {
  const format = readOutputFormat(body);
  if (format === "text" || isNamedTool(body.tool_choice)) return TEXT_FORMAT;
  if (format === "json") {
    return { kind: "told", words: "Answer with one JSON object and nothing else." };
  }
  const { schema } = format;
  if (acceptsSchema(upstreamId)) {
    return { kind: "schema", output: { type: "json_schema", schema: toClaudeSchema(schema) } };
  }
  const type = schema["type"] ?? "object";
  if (getForcingToolChoice(upstreamId) === "tool" && type === "object") {
    return { kind: "tool", schema, name: chooseOutputToolName(body) };
  }
  const words = `Answer with one JSON value that matches this JSON schema, and nothing else: ${JSON.stringify(schema)}`;
  return { kind: "told", words };
}

/** Returns the name of the tool for JSON output, or null. */
export function chooseJsonToolName(call: ChatCall): string | null {
  const format = chooseConverseOutputFormat(call);
  return format.kind === "tool" ? format.name : null;
}

function isNamedTool(choice: ChatBody["tool_choice"]): boolean {
  return typeof choice === "object" && choice.type === "function";
}

function acceptsSchema(model: string): boolean {
  if (getBedrockModelFamily(model) !== "claude") return false;
  const { jsonSchema, acceptsSampling: sampling } = getClaudeRules(model);
  return jsonSchema === "native" && sampling;
}

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

export function toConverseModelFields(input: ModelFieldsInput): ConverseModelFields {
  const { body, stops, model } = input;
  const family = getBedrockModelFamily(model);
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
  const rules = getClaudeRules(model);
  const fields = toClaudeReasoningFields(rules, body.reasoning_effort, cap, mayThink);
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

/** The reasoning level by effort. Models that can't turn reasoning off get "low" for "none". */
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
  // Every request has an output cap, and with a cap, Nova rejects the effort "high".
  const maxReasoningEffort = level === "low" ? "low" : "medium";
  return { reasoningConfig: { type: "enabled", maxReasoningEffort } };
}

export function bedrockIgnoresEffortNone(model: string): boolean {
  const family = getBedrockModelFamily(model);
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
