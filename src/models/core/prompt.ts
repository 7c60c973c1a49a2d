import { conversationOf, unsupportedFailure } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import type { ChatBody } from "./core-request.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";
import { parseTools } from "./tools.ts";
import type { RequestedTools } from "./tools.ts";

export type Prompt = {
  readonly conversation: Conversation;
  readonly tools: RequestedTools;
  readonly format: OutputFormat;
  readonly stops: readonly string[];
  readonly caches: boolean;
};

export type OutputFormat = "text" | "json" | { readonly schema: JsonObject };

/** Fails for several choices, or if the conversation or tools can't be converted. */
export function parsePrompt(body: ChatBody): Prompt | ProviderFailure {
  if ((body.n ?? 1) > 1) return unsupportedFailure("Several choices", "n");
  const conversation = conversationOf(body);
  if ("kind" in conversation) return conversation;
  const tools = parseTools(body);
  if ("kind" in tools) return tools;
  const stops = stopSequencesOf(body);
  const usesCache = CACHE_FIELDS.some((field) => body[field] !== undefined);
  return { conversation, tools, format: outputFormatOf(body), stops, caches: usesCache };
}

const CACHE_FIELDS = [
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
] as const;

function stopSequencesOf({ stop = [] }: ChatBody): readonly string[] {
  return [stop].flat().filter((text) => text.trim() !== "");
}

/** Returns the output format. An empty schema allows any JSON. */
export function outputFormatOf({ response_format: format }: ChatBody): OutputFormat {
  if (format === undefined || format.type === "text") return "text";
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined;
  return schema === undefined || Object.keys(schema).length === 0 ? "json" : { schema };
}

/**
 * Returns the name of the tool that the model must call for JSON output. The tool's input becomes
 * the output.
 */
export function nameOfOutputTool({ tools = [] }: ChatBody): string {
  const taken = new Set(
    tools.map((tool) => (tool.type === "function" ? tool.function.name : null)),
  );
  let name = "json";
  while (taken.has(name)) name += "_";
  return name;
}
