import { hashedBase62 } from "../hash.ts";
import { instanceOf } from "./schema-instance.ts";
import { isObject, objectOf } from "../json-value.ts";
import type { Called } from "./tool-choice.ts";

/** A call as OpenAI shows it; `arguments` is JSON text of an object. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string };

const ID_CHARACTERS = 24;

/** The same without its id, which tells choices and turns apart. */
export type CallDraft = Omit<ToolCall, "id">;

/**
 * The calls of these tools, with the arguments that were ordered or made from their schemas; a tool that is called again gets
 * other ones where its schema leaves room.
 */
export function draftCalls(tools: readonly Called[]): readonly CallDraft[] {
  const times = new Map<string, number>();
  return tools.map((tool) => {
    const time = times.get(tool.name) ?? 0;
    times.set(tool.name, time + 1);
    const { name, parameters } = tool;
    return { name, arguments: tool.arguments ?? argumentsOf(parameters, time) };
  });
}

/** The drafts with ids that depend on `seed` and position alone. */
export function withIds(drafts: readonly CallDraft[], seed: string): readonly ToolCall[] {
  return drafts.map(({ name, arguments: args }, index) => {
    const id = `call_${hashedBase62(`${seed} ${index} ${name}`, ID_CHARACTERS)}`;
    return { id, name, arguments: args };
  });
}

function argumentsOf(parameters: unknown, variant: number): string {
  const schema = objectOf(parameters);
  const takesObject = "$ref" in schema || "anyOf" in schema || "oneOf" in schema;
  const root = takesObject || "type" in schema ? schema : { ...schema, type: "object" };
  const value = instanceOf(root, variant);
  return JSON.stringify(isObject(value) ? value : {});
}
