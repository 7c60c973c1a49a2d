import type { ChatBody } from "../../core/core-request.ts";
import { nameOfOutputTool, outputFormatOf } from "../../core/prompt.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ClaudeRules } from "../../claude/claude-rules.ts";

/** The way to request JSON output: by an instruction, a schema or a forced tool call. */
export type JsonOutputMethod =
  | { readonly by: "words" }
  | { readonly by: "schema"; readonly schema: JsonObject }
  | { readonly by: "tool"; readonly schema: JsonObject; readonly name: string };

export function jsonOutputMethodOf(body: ChatBody, rules: ClaudeRules): JsonOutputMethod | null {
  const format = outputFormatOf(body);
  if (format === "text") return null;
  if (format === "json") return { by: "words" };
  if (rules.jsonSchema === "native") return { by: "schema", ...format };
  return { by: "tool", ...format, name: nameOfOutputTool(body) };
}
