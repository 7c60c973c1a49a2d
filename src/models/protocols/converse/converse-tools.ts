import { keepExactJson } from "../../../shared/exact-json.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { FunctionTool, RequestedTools } from "../../core/tools.ts";
import type { ConverseOutputFormat } from "./answer-format.ts";
import { bedrockFamilyOf, toolForcingOf } from "./models.ts";

export type ConverseToolFields = {
  readonly toolConfig?: JsonObject;
  /**
   * Claude's own `tool_choice`. It replaces Converse's, because only Claude's can forbid parallel
   * calls.
   */
  readonly toolChoice?: JsonObject;
  readonly isForced: boolean;
  readonly words: string;
};

/**
 * Returns `toolConfig` (Bedrock API reference, ToolConfiguration). For the choice "none", which
 * Converse lacks, no tools are sent. `strict` is never sent, because newer Claude models reject it
 * and others reject open schemas.
 */
export function converseToolFields(
  requested: RequestedTools,
  format: ConverseOutputFormat,
  model: string,
): ConverseToolFields {
  const offered = requested.choice === "none" ? [] : requested.list;
  const tools = format.kind === "tool" ? [...offered, answerToolOf(format)] : offered;
  if (tools.length === 0) return { isForced: false, words: "" };
  const wanted = wantedOf(requested, format, offered.length === 0);
  const forcing = toolForcingOf(model);
  const isForced = wanted !== "auto" && forcing !== "none";
  const choice = isForced ? wanted : "auto";
  const words = isForced ? "" : wordsFor(wanted);
  const family = bedrockFamilyOf(model);
  const isOnly = ({ name }: FunctionTool) =>
    forcing !== "any" || typeof choice === "string" || name === choice.name;
  const specs = tools.filter(isOnly).map((tool) => toolSpec(tool, family === "nova"));
  if (family === "claude" && !requested.parallel) {
    const toolChoice = { ...claudeChoice(choice), disable_parallel_tool_use: true };
    return { toolConfig: { tools: specs }, toolChoice, isForced, words };
  }
  const toolChoice = forcing === "any" && isForced ? { any: {} } : converseChoice(choice);
  return { toolConfig: { tools: specs, toolChoice }, isForced, words };
}

type ToolWish = Exclude<RequestedTools["choice"], "none">;

function wantedOf(
  { choice }: RequestedTools,
  format: ConverseOutputFormat,
  isAlone: boolean,
): ToolWish {
  if (format.kind === "tool") return isAlone ? { name: format.name } : "required";
  return choice === "none" ? "auto" : choice;
}

function wordsFor(choice: ToolWish): string {
  if (choice === "auto") return "";
  if (choice === "required") return "Answer by calling one of the tools.";
  return `Answer by calling the tool ${choice.name}.`;
}

function converseChoice(choice: ToolWish): JsonObject {
  if (typeof choice === "object") return { tool: { name: choice.name } };
  return choice === "required" ? { any: {} } : { auto: {} };
}

function claudeChoice(choice: ToolWish): JsonObject {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : "auto" };
}

function answerToolOf(format: {
  readonly name: string;
  readonly schema: JsonObject;
}): FunctionTool {
  const { name, schema } = format;
  return { name, description: "Gives the answer.", parameters: schema, strict: false };
}

function toolSpec({ name, description, parameters }: FunctionTool, isNova: boolean): JsonObject {
  const schema = isNova ? novaSchema(parameters) : parameters;
  const json = keepExactJson(schema, { ...schema, type: "object" });
  const about = description.trim() === "" ? {} : { description };
  return { toolSpec: { name, ...about, inputSchema: { json } } };
}

/**
 * Returns the schema for Nova, which supports only three keywords at the top level (Nova user
 * guide, tool use).
 */
function novaSchema({ properties = {}, required }: JsonObject): JsonObject {
  return { properties, ...(required !== undefined && { required }) };
}
