import { isCacheMarked } from "./cache-marks.ts";
import { refusalFailure, unsupportedFailure } from "./conversation.ts";
import type { ChatBody } from "./core-request.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";

export type FunctionTool = {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly strict: boolean;
  readonly isMarked?: true;
};

export type RequestedTools = {
  readonly list: readonly FunctionTool[];
  readonly choice: "auto" | "none" | "required" | { readonly name: string };
  readonly parallel: boolean;
};

/** Fails for legacy functions, custom tools and unknown choices. */
export function parseTools(body: ChatBody): RequestedTools | ProviderFailure {
  const { tools = [], tool_choice: choice, functions, function_call: legacyChoice } = body;
  if (functions !== undefined || legacyChoice !== undefined) {
    return refusalFailure("This model does not support 'functions'. Send 'tools'.", "functions");
  }
  const list: FunctionTool[] = [];
  for (const [index, tool] of tools.entries()) {
    if (tool.type === "custom") return unsupportedFailure("Custom tools", `tools[${index}]`);
    const one = toFunctionTool(tool.function);
    list.push(isCacheMarked(tool) ? { ...one, isMarked: true } : one);
  }
  const chosenTools = chooseTools(list, choice);
  if ("kind" in chosenTools) return chosenTools;
  return { ...chosenTools, parallel: body.parallel_tool_calls !== false };
}

type ToolChoice = ChatBody["tool_choice"];
type ChosenTools = Pick<RequestedTools, "list" | "choice">;

function chooseTools(
  list: readonly FunctionTool[],
  requested: ToolChoice,
): ChosenTools | ProviderFailure {
  if (typeof requested === "string" && list.length > 0) return { list, choice: requested };
  if (typeof requested !== "object") return { list, choice: "auto" };
  if (requested.type === "allowed_tools") return selectAllowedTools(list, requested.allowed_tools);
  const name = requested.type === "function" ? requested.function.name : null;
  // An unknown name fails here, because hosts would repeat it in their own errors.
  const chosenTool = list.find((tool) => tool.name === name);
  if (chosenTool !== undefined) return { list, choice: { name: chosenTool.name } };
  return refusalFailure("'tool_choice' names a function that isn't in 'tools'.", "tool_choice");
}

type AllowedTools = Extract<NonNullable<ToolChoice>, { type: "allowed_tools" }>["allowed_tools"];

function selectAllowedTools(
  list: readonly FunctionTool[],
  { mode, tools }: AllowedTools,
): ChosenTools | ProviderFailure {
  const names = new Set(
    tools.map((tool) => (tool.type === "function" ? tool.function.name : null)),
  );
  const allowedTools = list.filter((tool) => names.delete(tool.name));
  if (allowedTools.length === 0 || names.size > 0) {
    return refusalFailure("'tool_choice' allows a tool that isn't in 'tools'.", "tool_choice");
  }
  return { list: allowedTools, choice: mode };
}

const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

type DeclaredFunction = Extract<
  NonNullable<ChatBody["tools"]>[number],
  { type: "function" }
>["function"];

function toFunctionTool({ name, description, parameters, strict }: DeclaredFunction): FunctionTool {
  return {
    name,
    description: description ?? "",
    parameters: parameters ?? NO_PARAMETERS,
    strict: strict === true,
  };
}
