import { refusal, unsupported } from "./conversation.ts";
import { isObject, listOf, objectOf, textOf } from "./json-value.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";

/** A function that the model may call. */
export type Tool = {
  readonly name: string;
  /** "" when it has none. */
  readonly description: string;
  /** Its JSON schema; an object without properties when it takes nothing. */
  readonly parameters: JsonObject;
  readonly strict: boolean;
};

/** The tools of a request and how freely the model may choose among them. */
export type Tools = {
  readonly list: readonly Tool[];
  readonly choice: "auto" | "none" | "required" | { readonly name: string };
  /** False when the client wants at most one call a turn. */
  readonly parallel: boolean;
};

/**
 * `tools`, `tool_choice` (with `allowed_tools` resolved) and `parallel_tool_calls` of a checked chat
 * request. Refused: legacy functions, custom tools, a choice of or among tools that are not there: none
 * is left out, or a model without tools would answer.
 */
export function toolsOf(body: JsonObject): Tools | ProviderFailure {
  if (body["functions"] !== undefined || body["function_call"] !== undefined) {
    return refusal("This model does not take 'functions': send 'tools'.", "functions");
  }
  const list: Tool[] = [];
  for (const [index, raw] of listOf(body["tools"]).filter(isObject).entries()) {
    if (!isObject(raw["function"])) return unsupported("Custom tools", `tools[${index}]`);
    list.push(toolOf(raw["function"]));
  }
  const choice = chosen(list, body["tool_choice"]);
  if ("kind" in choice) return choice;
  return { ...choice, parallel: body["parallel_tool_calls"] !== false };
}

function chosen(
  list: readonly Tool[],
  raw: unknown,
): Pick<Tools, "list" | "choice"> | ProviderFailure {
  if (typeof raw === "string" && list.length > 0) {
    return { list, choice: raw === "none" || raw === "required" ? raw : "auto" };
  }
  if (isObject(raw) && isObject(raw["function"])) {
    const name = textOf(raw["function"]["name"]);
    // Hosts quote an unknown name in errors of their own.
    if (list.some((tool) => tool.name === name)) return { list, choice: { name } };
    return refusal("'tool_choice' names a function that 'tools' lacks.", "tool_choice");
  }
  return isObject(raw) && list.length > 0 ? someOf(list, raw) : { list, choice: "auto" };
}

/** The tools that a choice allows. */
function someOf(
  list: readonly Tool[],
  choice: JsonObject,
): Pick<Tools, "list" | "choice"> | ProviderFailure {
  const allowed = objectOf(choice["allowed_tools"]);
  const names = new Set(
    listOf(allowed["tools"]).map((tool) => objectOf(objectOf(tool)["function"])["name"]),
  );
  const some = list.filter((tool) => names.delete(tool.name));
  if (some.length === 0 || names.size > 0) {
    return refusal("'tool_choice' allows a tool that 'tools' lacks.", "tool_choice");
  }
  return { list: some, choice: allowed["mode"] === "required" ? "required" : "auto" };
}

const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

function toolOf(raw: JsonObject): Tool {
  return {
    name: textOf(raw["name"]),
    description: textOf(raw["description"]),
    parameters: isObject(raw["parameters"]) ? raw["parameters"] : NO_PARAMETERS,
    strict: raw["strict"] === true,
  };
}
