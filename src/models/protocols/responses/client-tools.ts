import * as z from "zod/mini";
import { invalid, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { joinNamespaceAndName } from "../../core/tool-calls.ts";
import { functionNameSchema, opaqueObjectSchema } from "../../core/core-request.ts";
import type { ChatBody } from "../../core/core-request.ts";

const LABEL_CHARACTERS_MAX = 64;
const TOOLS_MAX = 1024;
const text = z.nullish(z.string());

const functionTool = z.looseObject({
  type: z.literal("function"),
  name: functionNameSchema,
  description: text,
  parameters: z.nullish(opaqueObjectSchema),
  strict: z.nullish(z.boolean()),
});
const customTool = z.looseObject({
  type: z.literal("custom"),
  name: functionNameSchema,
  description: text,
  format: z.nullish(
    z.discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({
        type: z.literal("grammar"),
        syntax: z.enum(["lark", "regex"]),
        definition: z.string(),
      }),
    ]),
  ),
});
const namespaceTool = z.looseObject({
  type: z.literal("namespace"),
  name: z.string().check(z.minLength(1), z.maxLength(256)),
  description: text,
  tools: z
    .array(z.discriminatedUnion("type", [functionTool, customTool]))
    .check(z.maxLength(TOOLS_MAX)),
});
const anyTool = z.looseObject({ type: z.string().check(z.minLength(1)) });

type FunctionTool = z.infer<typeof functionTool>;
type CustomTool = z.infer<typeof customTool>;
type Namespace = z.infer<typeof namespaceTool>;
type SupportedTool = FunctionTool | CustomTool | Namespace;

const SUPPORTED = new Map<unknown, z.ZodMiniType<SupportedTool>>([
  ["function", functionTool],
  ["custom", customTool],
  ["namespace", namespaceTool],
]);

const tool: z.ZodMiniType<JsonObject> = anyTool.check(
  z.superRefine((value, context) => {
    const parsed = z.safeParse(SUPPORTED.get(value.type) ?? anyTool, value, { error: () => "" });
    if (!parsed.success) for (const issue of parsed.error.issues) context.addIssue({ ...issue });
  }),
);
export const responsesToolsSchema = z.array(tool).check(z.maxLength(TOOLS_MAX));

/** The client's tool that the gateway converted to a function. */
export type ToolOrigin = {
  readonly kind: "function" | "custom";
  readonly namespace: string | null;
  readonly name: string;
};

export type FlattenedTools = {
  readonly tools: readonly CoreTool[];
  readonly own: readonly JsonObject[];
  /** The client's tools, by their names in the chat request. */
  readonly origins: ReadonlyMap<string, ToolOrigin>;
  readonly left: readonly string[];
};
type CoreTool = NonNullable<ChatBody["tools"]>[number];

/** Reports whether OpenAI accepts a namespace. Other namespaces become part of the tool's name. */
export function isAcceptedNamespace(name: string | null): name is string {
  return name !== null && /^[a-zA-Z0-9_-]{1,64}$/.test(name);
}

/**
 * Converts functions and custom tools to functions, with the namespace in the name. Drops other
 * types. Repeated tools replace earlier ones. Returns 400 if two different tools get the same name.
 */
export function flattenTools(lists: readonly ToolList[]): Result<FlattenedTools> {
  const coreTools = new Map<string, CoreTool>();
  const nativeTools = new Map<string, NativeTool>();
  const origins = new Map<string, ToolOrigin>();
  const droppedTypes = new Set<string>();
  for (const { raw, at } of lists.flatMap(toolsWithPath)) {
    const { type } = raw;
    if (!SUPPORTED.has(type)) droppedTypes.add(textOf(type));
    for (const { origin, core, native } of flattenTool(raw as SupportedTool)) {
      const name = joinNamespaceAndName(origin.namespace, origin.name);
      const earlier = origins.get(name) ?? origin;
      if (!isSame(earlier, origin)) {
        return invalid(`Two tools have the same name '${name}'.`, `${at}.name`);
      }
      origins.set(name, origin);
      coreTools.set(name, core(name));
      nativeTools.set(name, native);
    }
  }
  return success({
    tools: [...coreTools.values()],
    own: groupByNamespace([...nativeTools.values()]),
    origins,
    left: [...droppedTypes],
  });
}

type NativeTool = { readonly tool: JsonObject; readonly namespace: Namespace | null };

function groupByNamespace(nativeTools: readonly NativeTool[]): JsonObject[] {
  const hostTools: JsonObject[] = [];
  const toolsByNamespace = new Map<string, JsonObject[]>();
  for (const { tool: nativeTool, namespace } of nativeTools) {
    const others = namespace === null ? hostTools : toolsByNamespace.get(namespace.name);
    others?.push(nativeTool);
    if (namespace === null || others !== undefined) continue;
    const namespaceTools = [nativeTool];
    toolsByNamespace.set(namespace.name, namespaceTools);
    const { name, description } = namespace;
    hostTools.push({
      type: "namespace",
      name,
      description: description || name,
      tools: namespaceTools,
    });
  }
  return hostTools;
}

type ToolList = { readonly tools: readonly JsonObject[]; readonly at: string };

function toolsWithPath({
  tools: list,
  at,
}: ToolList): { readonly raw: JsonObject; readonly at: string }[] {
  return list.map((raw, index) => ({ raw, at: `${at}[${index}]` }));
}

type FlatTool = {
  readonly origin: ToolOrigin;
  readonly core: (name: string) => CoreTool;
  readonly native: NativeTool;
};

function flattenTool(raw: SupportedTool): FlatTool[] {
  if (raw.type === "namespace") return raw.tools.map((inner) => flatTool(inner, raw));
  return SUPPORTED.has(raw.type) ? [flatTool(raw, null)] : [];
}

function flatTool(raw: FunctionTool | CustomTool, enclosing: Namespace | null): FlatTool {
  const { type: kind, name } = raw;
  const namespace = enclosing?.name ?? null;
  const nativeNamespace = isAcceptedNamespace(namespace) ? enclosing : null;
  const core = kind === "function" ? functionFields(raw) : customToolFields(raw);
  return {
    origin: { kind, namespace, name },
    core: (flat) => ({ type: "function", function: { name: flat, ...core } }),
    native: {
      namespace: nativeNamespace,
      tool: toNativeTool(
        raw,
        nativeNamespace === null ? joinNamespaceAndName(namespace, name) : name,
      ),
    },
  };
}

function toNativeTool(raw: FunctionTool | CustomTool, name: string): JsonObject {
  const { type, description } = raw;
  const reported = { type, name, ...(description && { description }) };
  if (raw.type === "custom") {
    return { ...reported, ...(raw.format && { format: formatOf(raw.format) }) };
  }
  const { parameters, strict } = raw;
  return {
    ...reported,
    parameters: parameters ?? { type: "object", properties: {} },
    ...(typeof strict === "boolean" && { strict }),
  };
}

function formatOf(format: NonNullable<CustomTool["format"]>): JsonObject {
  if (format.type === "text") return { type: "text" };
  const { type, syntax, definition } = format;
  return { type, syntax, definition };
}

/**
 * Returns a function's fields. `strict` defaults to false, because most hosts limit strict schemas.
 */
function functionFields({ description, parameters, strict }: FunctionTool) {
  return {
    ...(description && { description }),
    ...(parameters && { parameters }),
    strict: strict === true,
  };
}

const INPUT_FIELD = "input";

function customToolFields({ description, format }: CustomTool) {
  const grammar =
    format?.type === "grammar"
      ? `The input must match this ${format.syntax} grammar:\n${format.definition}`
      : "";
  const instructions = [description ?? "", grammar].filter((part) => part !== "").join("\n\n");
  return {
    ...(instructions !== "" && { description: instructions }),
    parameters: {
      type: "object",
      properties: { [INPUT_FIELD]: { type: "string" } },
      required: [INPUT_FIELD],
      additionalProperties: false,
    },
    strict: false,
  };
}

export function toCustomToolArguments(input: string): string {
  return JSON.stringify({ [INPUT_FIELD]: input });
}

export function parseCustomToolArguments(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    return isObject(value) && typeof value[INPUT_FIELD] === "string" ? value[INPUT_FIELD] : args;
  } catch {
    return args;
  }
}

function isSame(a: ToolOrigin, b: ToolOrigin): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}

export const responsesToolChoiceSchema = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: z.array(anyTool).check(z.minLength(1), z.maxLength(TOOLS_MAX)),
  }),
  anyTool,
]);
type ToolChoice = z.infer<typeof responsesToolChoiceSchema>;

/**
 * Converts `tool_choice`. For `allowed_tools`, keeps only these tools, so that models can't call
 * others. Returns 400 if the chosen tool is missing.
 */
export function resolveToolChoice(
  flat: FlattenedTools,
  choice: ToolChoice | undefined,
  parallel: boolean | undefined,
): Result<Pick<ChatBody, "tools" | "tool_choice" | "parallel_tool_calls">> {
  const allTools = [...flat.tools];
  const parallelField = parallel === undefined ? {} : { parallel_tool_calls: parallel };
  if (choice === undefined || typeof choice === "string") {
    if (choice === "required" && allTools.length === 0) return refuseMissingTool("a tool", flat);
    if (allTools.length === 0) return success({});
    return success({
      tools: allTools,
      ...(choice !== undefined && { tool_choice: choice }),
      ...parallelField,
    });
  }
  if (choice.type === "allowed_tools") {
    const allowed = selectAllowed(flat, choice);
    const mode = choice.mode === "required" ? "required" : "auto";
    return allowed.ok
      ? success({ tools: allowed.value, tool_choice: mode, ...parallelField })
      : allowed;
  }
  const name = flatNameOf(flat, choice);
  if (name === null) return refuseMissingTool(`'${toolLabel(choice)}'`, flat);
  const chosenTool = { type: "function" as const, function: { name } };
  return success({ tools: allTools, tool_choice: chosenTool, ...parallelField });
}

export function choosesNamespacedTool(
  flat: FlattenedTools,
  choice: ToolChoice | undefined,
): boolean {
  if (choice === undefined || typeof choice === "string") return false;
  const chosenTools = choice.type === "allowed_tools" ? listOf(choice.tools) : [choice];
  return chosenTools
    .filter(isObject)
    .some((chosen) => (flat.origins.get(flatNameOf(flat, chosen) ?? "")?.namespace ?? "") !== "");
}

export function toNativeToolChoice(flat: FlattenedTools, choice: ToolChoice): unknown {
  if (typeof choice === "string") return choice;
  const nativeNames = (chosen: JsonObject & KnownFields<"type">): JsonObject[] => {
    const name = flatNameOf(flat, chosen);
    return name === null ? [] : [{ type: chosen.type, name }];
  };
  if (choice.type !== "allowed_tools") return nativeNames(choice)[0];
  const allowed = listOf(choice.tools).filter(isObject).flatMap(nativeNames);
  return { type: "allowed_tools", mode: choice.mode, tools: allowed };
}

function selectAllowed(
  flat: FlattenedTools,
  choice: JsonObject & KnownFields<"tools">,
): Result<CoreTool[]> {
  const names = new Set<string>();
  for (const chosen of listOf(choice.tools).filter(isObject)) {
    const name = flatNameOf(flat, chosen);
    const { type } = chosen;
    if (name !== null) names.add(name);
    else if (SUPPORTED.has(type)) {
      return refuseMissingTool(`'${toolLabel(chosen)}'`, flat);
    }
  }
  const allowed = flat.tools.filter(
    (one) => one.type === "function" && names.has(one.function.name),
  );
  return allowed.length === 0 ? refuseMissingTool("a tool", flat) : success(allowed);
}

function flatNameOf({ origins }: FlattenedTools, choice: JsonObject): string | null {
  const { type: kind, name, namespace } = choice;
  for (const [flat, origin] of origins) {
    const hasNamespace = typeof namespace === "string" ? origin.namespace === namespace : true;
    if (origin.kind === kind && origin.name === name && hasNamespace) return flat;
  }
  return null;
}

function toolLabel({ type, name }: JsonObject): string {
  return (typeof name === "string" ? name : textOf(type)).slice(0, LABEL_CHARACTERS_MAX);
}

function refuseMissingTool(missing: string, { left }: FlattenedTools): Refusal {
  const explanation = left.length === 0 ? "" : " Tools that the provider runs are not supported.";
  return invalid(
    `'tool_choice' names ${missing}, which isn't in 'tools'.${explanation}`,
    "tool_choice",
  );
}
