import { isObject, listOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import { fittingToolName } from "./tool-name.ts";

export function flatToolName(namespace: string | null, name: string): string {
  if (namespace === null) return name;
  return fittingToolName(`${namespace}__${name}`);
}

/**
 * Models that support tool namespaces. Earlier models reject namespaces, or the names of OpenAI's
 * tools.
 */
export const SUPPORTS_NAMESPACES = /^gpt-(?:5\.[6-9]|[6-9])/;

export function withoutToolNamespaces({ tools, input, ...body }: JsonObject): JsonObject {
  return {
    ...body,
    ...(tools !== undefined && { tools: listOf(tools).filter(isObject).flatMap(flatTools) }),
    input: Array.isArray(input) ? input.filter(isObject).map(flatCall) : input,
  };
}

function flatTools(tool: JsonObject): JsonObject[] {
  if (tool["type"] !== "namespace") return [tool];
  const namespace = textOf(tool["name"]);
  const removeNamespace = (one: JsonObject): JsonObject => {
    return { ...one, name: flatToolName(namespace, textOf(one["name"])) };
  };
  return listOf(tool["tools"]).filter(isObject).map(removeNamespace);
}

function flatCall(item: JsonObject): JsonObject {
  const { namespace, ...call } = item;
  if (typeof namespace !== "string") return item;
  return { ...call, name: flatToolName(namespace, textOf(call["name"])) };
}
