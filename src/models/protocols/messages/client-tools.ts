import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { FittingToolNames } from "../../core/tool-name.ts";
import type { ConversionLosses } from "./client-losses.ts";
import type { CountBody, MessagesTool } from "./client-request.ts";

/**
 * The client runs `custom` and `client` tools, Anthropic the others. Anthropic bills `server` tools
 * per call, and the catalog has no price for a call.
 */
type ToolKind = "custom" | "client" | "server" | "search";

const CLIENT = /^(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}$/;
const SEARCH = /^tool_search_tool_(?:bm25|regex)(?:_\d{8})?$/;

/** Returns a tool's kind: `server` for unknown types, because their cost is unknown. */
export function toolKindOf({ type: given }: { readonly type?: unknown }): ToolKind {
  if (given === undefined || given === null || given === "custom") return "custom";
  const type = textOf(given);
  if (CLIENT.test(type)) return "client";
  return SEARCH.test(type) ? "search" : "server";
}

/** Drops and reports tools that Anthropic runs. Returns 400 if `tool_choice` forces one of them. */
export function removeServerTools(
  body: CountBody,
  dropped: Set<string>,
): Result<readonly MessagesTool[]> {
  const kept: MessagesTool[] = [];
  const left = new Set<string>();
  for (const [at, tool] of (body.tools ?? []).entries()) {
    const kind = toolKindOf(tool);
    const problem = kind === "custom" ? customProblem(tool, at) : null;
    if (problem !== null) return problem;
    if (kind !== "server") kept.push(tool);
    else {
      dropped.add(`tools[${at}]:${tool.type}`);
      left.add(tool.name ?? "");
    }
  }
  return choiceProblem(body.tool_choice ?? null, kept, left) ?? success(kept);
}

/** Returns an error if `tool_choice` names a missing tool, which hosts would ignore. */
function choiceProblem(
  choice: ToolWish | null,
  kept: readonly MessagesTool[],
  left: ReadonlySet<string>,
): Result<never> | null {
  const param = "tool_choice";
  if (choice?.type === "tool" && left.has(choice.name)) {
    const problem = "runs at the model's author, who bills it, and is not supported";
    return invalid(`tool_choice: '${choice.name}' ${problem}`, param);
  }
  if (choice?.type === "tool" && !kept.some((tool) => couldBeChosen(tool, choice.name))) {
    return invalid(`tool_choice: '${choice.name}' isn't in 'tools'`, param);
  }
  return choice?.type === "any" && kept.length === 0
    ? invalid("tool_choice: none of the tools is supported", param)
    : null;
}

function couldBeChosen({ type, name }: MessagesTool, chosen: string): boolean {
  return name === chosen || /_toolset_\d{8}$/.test(type ?? "");
}

type ToolWish = NonNullable<CountBody["tool_choice"]>;

function customProblem(
  { name, input_schema: schema }: MessagesTool,
  at: number,
): Result<never> | null {
  if (name === undefined || name === null) {
    return invalid(`tools[${at}].name: Field required`, `tools[${at}].name`);
  }
  if (schema === undefined || schema === null) {
    return invalid(`tools[${at}].input_schema: Field required`, `tools[${at}].input_schema`);
  }
  return null;
}

export function coreToolFields(body: CountBody, losses: ConversionLosses): Result<JsonObject> {
  const kept = removeServerTools(body, losses.dropped);
  if (!kept.ok) return kept;
  const functions = (body.tools ?? []).flatMap((tool, at) =>
    kept.value.includes(tool) ? functionsOf(tool, `tools[${at}]`, losses) : [],
  );
  if (functions.length === 0) return success({});
  const { tool_choice: choice } = body;
  return success({
    tools: functions,
    ...(choice && { tool_choice: choiceOf(choice, losses.names) }),
    ...(forbidsParallelCalls(choice) && { parallel_tool_calls: false }),
  });
}

function forbidsParallelCalls(choice: CountBody["tool_choice"]): boolean {
  return choice?.["disable_parallel_tool_use"] === true;
}

function functionsOf(tool: MessagesTool, place: string, losses: ConversionLosses): JsonObject[] {
  const kind = toolKindOf(tool);
  if (kind === "custom") return [functionOf(tool, losses.names)];
  if (kind === "search") losses.dropped.add(`${place}:${tool.type}`);
  else losses.cannot(`${place}.type`, `only Claude models support '${tool.type}'`);
  return [];
}

function functionOf(
  { name, description, input_schema: parameters, strict }: MessagesTool,
  names: FittingToolNames,
): JsonObject {
  return {
    type: "function",
    function: {
      name: names.fitting(name ?? ""),
      ...(description && { description }),
      parameters,
      ...(typeof strict === "boolean" && { strict }),
    },
  };
}

function choiceOf(choice: ToolWish, names: FittingToolNames): unknown {
  switch (choice.type) {
    case "auto":
      return "auto";
    case "any":
      return "required";
    case "none":
      return "none";
    case "tool":
      return { type: "function", function: { name: names.fitting(choice.name) } };
  }
}
