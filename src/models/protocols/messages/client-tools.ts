import { AcceptedToolNames } from "../../core/tool-calls.ts";
import type { CountTokensBody, MessagesTool } from "./client-request.ts";
import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

/** Records the features of a Messages request that chat requests lack. */
export class ConversionLosses {
  readonly dropped = new Set<string>();
  readonly names: AcceptedToolNames;
  lack: { readonly param: string; readonly message: string } | null = null;

  constructor(body: CountTokensBody) {
    this.names = new AcceptedToolNames(toolNamesIn(body));
  }

  recordMissingFeature(param: string, problem: string): void {
    this.lack ??= { param, message: `${param}: ${problem}` };
  }
}

function toolNamesIn({ tools, messages }: CountTokensBody): readonly string[] {
  const called = messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((block) => (block.type === "tool_use" ? [block.name] : [])),
  );
  return [...(tools ?? []).flatMap(({ name }) => name ?? []), ...called];
}

/**
 * The client runs `custom` and `client` tools. Anthropic runs the others. Anthropic bills each call
 * of `server` tools, for which the catalog has no price.
 */
type ToolKind = "custom" | "client" | "server" | "search";

const CLIENT_TOOL_TYPE =
  /^(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}$/;
const SEARCH_TOOL_TYPE = /^tool_search_tool_(?:bm25|regex)(?:_\d{8})?$/;

/** Returns a tool's kind: `server` for unknown types, because their cost is unknown. */
export function getToolKind({ type: rawType }: { readonly type?: unknown }): ToolKind {
  if (rawType === undefined || rawType === null || rawType === "custom") return "custom";
  const type = textOf(rawType);
  if (CLIENT_TOOL_TYPE.test(type)) return "client";
  return SEARCH_TOOL_TYPE.test(type) ? "search" : "server";
}

/**
 * Drops and reports tools that Anthropic runs and bills. Returns 400 if `tool_choice` forces one.
 */
export function removeServerTools(
  body: CountTokensBody,
  dropped: Set<string>,
): Result<readonly MessagesTool[]> {
  const supportedTools: MessagesTool[] = [];
  const removedNames = new Set<string>();
  for (const [index, tool] of (body.tools ?? []).entries()) {
    const kind = getToolKind(tool);
    const problem = kind === "custom" ? checkCustomTool(tool, index) : null;
    if (problem !== null) return problem;
    if (kind !== "server") supportedTools.push(tool);
    else {
      dropped.add(`tools[${index}]:${tool.type}`);
      removedNames.add(tool.name ?? "");
    }
  }
  return (
    checkToolChoice(body.tool_choice ?? null, supportedTools, removedNames) ??
    success(supportedTools)
  );
}

/**
 * Returns an error if `tool_choice` names a missing tool, because hosts would ignore the choice.
 */
function checkToolChoice(
  choice: ToolChoice | null,
  supportedTools: readonly MessagesTool[],
  removedNames: ReadonlySet<string>,
): Result<never> | null {
  const param = "tool_choice";
  if (choice?.type === "tool" && removedNames.has(choice.name)) {
    const problem = "runs at the model's author, who bills it, and is not supported";
    return invalid(`tool_choice: '${choice.name}' ${problem}`, param);
  }
  if (choice?.type === "tool" && !supportedTools.some((tool) => couldBeChosen(tool, choice.name))) {
    return invalid(`tool_choice: '${choice.name}' isn't in 'tools'`, param);
  }
  return choice?.type === "any" && supportedTools.length === 0
    ? invalid("tool_choice: none of the tools is supported", param)
    : null;
}

function couldBeChosen({ type, name }: MessagesTool, chosen: string): boolean {
  return name === chosen || /_toolset_\d{8}$/.test(type ?? "");
}

type ToolChoice = NonNullable<CountTokensBody["tool_choice"]>;

function checkCustomTool(
  { name, input_schema: schema }: MessagesTool,
  index: number,
): Result<never> | null {
  if (name === undefined || name === null) {
    return invalid(`tools[${index}].name: Field required`, `tools[${index}].name`);
  }
  if (schema === undefined || schema === null) {
    return invalid(`tools[${index}].input_schema: Field required`, `tools[${index}].input_schema`);
  }
  return null;
}

export function toChatToolFields(
  body: CountTokensBody,
  losses: ConversionLosses,
): Result<JsonObject> {
  const supportedTools = removeServerTools(body, losses.dropped);
  if (!supportedTools.ok) return supportedTools;
  const functions = (body.tools ?? []).flatMap((tool, at) =>
    supportedTools.value.includes(tool) ? toFunctions(tool, `tools[${at}]`, losses) : [],
  );
  if (functions.length === 0) return success({});
  const { tool_choice: choice } = body;
  return success({
    tools: functions,
    ...(choice && { tool_choice: toChatToolChoice(choice, losses.names) }),
    ...(choice?.["disable_parallel_tool_use"] === true && { parallel_tool_calls: false }),
  });
}

function toFunctions(tool: MessagesTool, path: string, losses: ConversionLosses): JsonObject[] {
  const kind = getToolKind(tool);
  if (kind === "custom") return [toFunction(tool, losses.names)];
  if (kind === "search") losses.dropped.add(`${path}:${tool.type}`);
  else losses.recordMissingFeature(`${path}.type`, `only Claude models support '${tool.type}'`);
  return [];
}

function toFunction(
  { name, description, input_schema: parameters, strict }: MessagesTool,
  names: AcceptedToolNames,
): JsonObject {
  return {
    type: "function",
    function: {
      name: names.nameFor(name ?? ""),
      ...(description && { description }),
      parameters,
      ...(typeof strict === "boolean" && { strict }),
    },
  };
}

function toChatToolChoice(choice: ToolChoice, names: AcceptedToolNames): unknown {
  switch (choice.type) {
    case "auto":
      return "auto";
    case "any":
      return "required";
    case "none":
      return "none";
    case "tool":
      return { type: "function", function: { name: names.nameFor(choice.name) } };
  }
}
