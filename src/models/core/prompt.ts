import { conversationOf, unsupported } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import type { ChatBody } from "./core-request.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";
import { toolsOf } from "./tools.ts";
import type { Tools } from "./tools.ts";

/** What a checked chat asks, as wires that are not OpenAI's are told it. */
export type Prompt = {
  readonly said: Conversation;
  readonly tools: Tools;
  readonly format: OutputFormat;
  /** Texts that end an answer; none is blank. */
  readonly stops: readonly string[];
  /** The client wants its prompt kept in a cache. */
  readonly caches: boolean;
};

/** How the answer is to look: any text, any JSON object, or JSON of a schema. */
export type OutputFormat = "text" | "json" | { readonly schema: JsonObject };

/** The prompt of a request. Refused: what `conversationOf` and `toolsOf` refuse, and more choices than one. */
export function promptOf(body: ChatBody): Prompt | ProviderFailure {
  if ((body.n ?? 1) > 1) return unsupported("Several choices", "n");
  const said = conversationOf(body);
  if ("kind" in said) return said;
  const tools = toolsOf(body);
  if ("kind" in tools) return tools;
  const stops = stopsOf(body);
  const caches = CACHING.some((field) => body[field] !== undefined);
  return { said, tools, format: formatOf(body), stops, caches };
}

const CACHING = ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"] as const;

/** `stop` without blank texts. */
function stopsOf({ stop = [] }: ChatBody): readonly string[] {
  return [stop].flat().filter((text) => text.trim() !== "");
}

/** `response_format`; a schema that says nothing is none. */
export function formatOf({ response_format: format }: ChatBody): OutputFormat {
  if (format === undefined || format.type === "text") return "text";
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined;
  return schema === undefined || Object.keys(schema).length === 0 ? "json" : { schema };
}

/** The name of a tool whose input is the answer: "json", unless a tool of the client's has that name. */
export function answerToolName({ tools = [] }: ChatBody): string {
  const taken = new Set(
    tools.map((tool) => (tool.type === "function" ? tool.function.name : null)),
  );
  let name = "json";
  while (taken.has(name)) name += "_";
  return name;
}
