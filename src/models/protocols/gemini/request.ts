import { toConversation, createRefusalFailure, parseTools } from "../../core/conversation.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import { downloadImages } from "../../core/inline-image.ts";
import type {
  ConversationWithDownloadedImages,
  PartWithDownloadedImage,
} from "../../core/inline-image.ts";
import { textOf, isObject, createObjectReader } from "../../core/json-value.ts";
import { createOutgoingBody } from "../../core/outgoing-body.ts";
import type { OutgoingBody } from "../../core/outgoing-body.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import type { RequestedTools } from "../../core/conversation.ts";
import { copyExactJson } from "../../../shared/exact-json.ts";

const PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator";

/** Returns the body of a generateContent request. Downloads its images. */
export async function toGeminiChatRequest(call: ChatCall): Promise<OutgoingBody | ProviderFailure> {
  const tools = parseTools(call.body);
  if ("reason" in tools) return tools;
  const parsed = toConversation(call.body);
  if ("reason" in parsed) return parsed;
  const conversation = await downloadImages(parsed, call);
  if ("kind" in conversation) return conversation;
  const hasMisplacedImage = conversation.turns.some(({ parts }) =>
    parts.some((part) => part.kind === "result" && part.name === ""),
  );
  if (hasMisplacedImage) {
    return createRefusalFailure("A tool message must belong to an earlier tool call.", "messages");
  }
  const body = {
    ...conversationFields(conversation, call.upstreamId),
    ...toolFields(tools),
    generationConfig: generationConfig(call),
  };
  reportDroppedFields(call, body, SENT_FIELD_PATHS);
  return createOutgoingBody(body, conversation.downloads);
}

const SENT_FIELD_PATHS: SentFieldPaths = {
  frequency_penalty: ["generationConfig.frequencyPenalty"],
  presence_penalty: ["generationConfig.presencePenalty"],
  reasoning_effort: ["generationConfig.thinkingConfig"],
  seed: ["generationConfig.seed"],
  stop: ["generationConfig.stopSequences"],
  temperature: ["generationConfig.temperature"],
  top_p: ["generationConfig.topP"],
};

type Content = { readonly role: "user" | "model"; readonly parts: readonly JsonObject[] };

function conversationFields(
  { system, turns }: ConversationWithDownloadedImages,
  model: string,
): JsonObject {
  const contents: Content[] = [];
  let calls: readonly string[] = [];
  for (const { role, parts } of turns) {
    const fields = orderByCall(parts, calls).flatMap((part) => toGeminiParts(part, model));
    calls = parts.flatMap((part) => (part.kind === "call" ? [part.id] : []));
    if (role === "assistant" && requiresCallSignatures(model)) signFirstCall(fields);
    if (fields.length > 0) {
      contents.push({ role: role === "user" ? "user" : "model", parts: fields });
    }
  }
  const instructions = system.map((text) => ({ text }));
  if (instructions.length === 0) return { contents };
  const [first, ...rest] = contents;
  // Instructions without messages are a valid prompt. Gemma has no field for instructions.
  if (first === undefined) return { contents: [{ role: "user", parts: instructions }] };
  if (!model.startsWith("gemma")) return { systemInstruction: { parts: instructions }, contents };
  if (first.role === "model") {
    return { contents: [{ role: "user", parts: instructions }, ...contents] };
  }
  return { contents: [{ role: "user", parts: [...instructions, ...first.parts] }, ...rest] };
}

/** Models before Gemini 3 match tool results to tool calls only by order and name. */
function orderByCall(
  parts: readonly PartWithDownloadedImage[],
  calls: readonly string[],
): readonly PartWithDownloadedImage[] {
  const position = (part: PartWithDownloadedImage): number => {
    if (part.kind !== "result") return calls.length + 1;
    const at = calls.indexOf(part.id);
    return at === -1 ? calls.length : at;
  };
  return parts.toSorted((a, b) => position(a) - position(b));
}

const readExtra = createObjectReader({ google: createObjectReader({ thought_signature: textOf }) });

function toGeminiParts(part: PartWithDownloadedImage, model: string): JsonObject[] {
  if (part.kind === "text") return [{ text: part.text }];
  if (part.kind === "image") {
    return [{ inlineData: { mimeType: part.image.mediaType, data: part.image.base64 } }];
  }
  // Google attaches its thoughts to tool calls, so this separate thought is from another provider.
  if (part.kind === "thought") return [];
  // Older models reject the field `id`.
  const id = requiresCallSignatures(model) ? { id: part.id } : {};
  if (part.kind === "result") {
    return [{ functionResponse: { ...id, name: part.name, response: { output: part.text } } }];
  }
  const { google } = readExtra(part.extra);
  const { thought_signature: signature } = google;
  const functionCall = { ...id, name: part.name, args: part.input };
  return [{ functionCall, ...(signature !== "" && { thoughtSignature: signature }) }];
}

/** Signs the first tool call of a turn, because Google returns 400 for an unsigned first call. */
function signFirstCall(fields: JsonObject[]): void {
  const at = fields.findIndex((part) => "functionCall" in part);
  const first = fields[at];
  if (first !== undefined) fields[at] = { thoughtSignature: PLACEHOLDER_SIGNATURE, ...first };
}

function toolFields({ list, choice }: RequestedTools): JsonObject {
  if (list.length === 0) return {};
  const functionDeclarations = list.map(({ name, description, parameters }) => ({
    name,
    ...(description !== "" && { description }),
    parametersJsonSchema: toGeminiSchema(parameters),
  }));
  const isStrict = list.some((tool) => tool.strict);
  return {
    tools: [{ functionDeclarations }],
    toolConfig: { functionCallingConfig: callingConfig(choice, isStrict) },
  };
}

function callingConfig(choice: RequestedTools["choice"], isStrict: boolean): JsonObject {
  if (typeof choice === "object") return { mode: "ANY", allowedFunctionNames: [choice.name] };
  if (choice === "none") return { mode: "NONE" };
  if (choice === "required") return { mode: "ANY" };
  return { mode: isStrict ? "VALIDATED" : "AUTO" };
}

const NAME_BY_FIELD = { temperature: "temperature", top_p: "topP", n: "candidateCount" } as const;
/**
 * Google's names for OpenAI's penalty fields. Zeros are dropped, because newer models return 400
 * for any penalty.
 */
const NAME_BY_PENALTY = {
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
} as const;

function generationConfig({ body, cap, upstreamId }: ChatCall): JsonObject {
  const config: Record<string, unknown> = { maxOutputTokens: cap };
  for (const [field, name] of Object.entries(NAME_BY_FIELD)) config[name] = body[field];
  for (const [field, name] of Object.entries(NAME_BY_PENALTY)) {
    config[name] = body[field] || undefined;
  }
  const { stop = [], seed, response_format: format } = body;
  const stops = [stop].flat().filter((text) => text !== "");
  const isJson = format !== undefined && format.type !== "text";
  const schema = format?.type === "json_schema" ? format.json_schema.schema : undefined;
  return {
    ...config,
    ...(seed !== undefined && { seed: seed | 0 }), // Google's seed has 32 bits.
    ...(stops.length > 0 && { stopSequences: stops }),
    ...(isJson && {
      responseMimeType: "application/json",
      responseJsonSchema: schema && toGeminiSchema(schema),
    }),
    thinkingConfig: toGeminiThinkingConfig(upstreamId, body.reasoning_effort, cap),
  };
}

/**
 * A model family and its way of limiting thinking: levels (Gemini 3 and later) or a budget in
 * tokens (2.5).
 */
type Family = { readonly models: RegExp } & (
  | { readonly levels: Readonly<Record<string, string>> }
  | { readonly offBudget: number; readonly budgetMin: number; readonly budgetMax: number }
);

const LEVELS = { low: "LOW", medium: "MEDIUM", high: "HIGH", xhigh: "HIGH", max: "HIGH" };
const LEVELS_FROM_LOW = { ...LEVELS, none: "LOW", minimal: "LOW" };
const LEVELS_FROM_MINIMAL = { ...LEVELS, none: "MINIMAL", minimal: "MINIMAL" };

const FAMILIES: readonly Family[] = [
  { models: /^gemini-3-pro/, levels: { ...LEVELS_FROM_LOW, medium: "HIGH" } },
  // Flash models from 3.7 on and all Pro models return 400 for MINIMAL. All support LOW.
  { models: /^gemini-3(?:\.[0-6])?-flash/, levels: LEVELS_FROM_MINIMAL },
  { models: /^gemini-(?:[3-9]|\d\d)|^gemini-[a-z-]+-latest$/, levels: LEVELS_FROM_LOW },
  { models: /^gemini-2\.5-pro/, offBudget: 128, budgetMin: 128, budgetMax: 32_768 },
  { models: /^gemini-2\.5-flash-lite/, offBudget: 0, budgetMin: 512, budgetMax: 24_576 },
  { models: /^gemini-2\.5-flash/, offBudget: 0, budgetMin: 1, budgetMax: 24_576 },
];

const BUDGET_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};
const THINKING_SHARE_MAX = 0.75;

export function toGeminiThinkingConfig(
  model: string,
  effort: unknown,
  cap: number | null,
): JsonObject | undefined {
  if (typeof effort !== "string") return undefined;
  const family = FAMILIES.find(({ models }) => models.test(model));
  if (family === undefined) return undefined;
  const includeThoughts = effort === "none" ? undefined : true;
  if ("levels" in family) return { thinkingLevel: family.levels[effort], includeThoughts };
  const { offBudget, budgetMin, budgetMax } = family;
  if (effort === "none") return { thinkingBudget: offBudget };
  const share = Math.max(budgetMin, Math.floor((cap ?? Infinity) * THINKING_SHARE_MAX));
  const budget = Math.min(
    Math.max(BUDGET_BY_EFFORT[effort] ?? budgetMin, budgetMin),
    budgetMax,
    share,
  );
  return { thinkingBudget: budget, includeThoughts };
}

export function geminiIgnoresEffortNone(model: string): boolean {
  return toGeminiThinkingConfig(model, "none", null)?.["thinkingBudget"] !== 0;
}

/** Reports whether requests must repeat the IDs and signatures of calls (Gemini 3 and later). */
export function requiresCallSignatures(model: string): boolean {
  return /^gemini-(?:[3-9]|\d\d)|^gemini-[a-z-]+-latest$/.test(model);
}

const NESTED_SCHEMA_KEYWORDS: ReadonlySet<string> = new Set(
  "items additionalProperties prefixItems anyOf oneOf allOf not".split(" "),
);
const NAMED_SCHEMA_KEYWORDS: ReadonlySet<string> = new Set(
  "properties $defs definitions patternProperties".split(" "),
);

/**
 * Removes all keywords next to `$ref` that don't start with `$`, because Google rejects them
 * (ai.google.dev).
 */
export function toGeminiSchema(schema: JsonObject): JsonObject {
  const { $ref: reference } = schema;
  const entries = Object.entries(schema)
    .filter(([key]) => typeof reference !== "string" || key.startsWith("$"))
    .map(([key, value]): [string, unknown] => {
      if (NAMED_SCHEMA_KEYWORDS.has(key) && isObject(value)) return [key, convertByName(value)];
      return [key, NESTED_SCHEMA_KEYWORDS.has(key) ? convertNested(value) : value];
    });
  return copyExactJson(schema, Object.fromEntries(entries));
}

function convertNested(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convertNested);
  return isObject(value) ? toGeminiSchema(value) : value;
}

function convertByName(schemaByName: JsonObject): JsonObject {
  const copies = Object.entries(schemaByName).map(([name, value]) => [name, convertNested(value)]);
  return copyExactJson(schemaByName, Object.fromEntries(copies));
}
