import type { ChatBody } from "../../core/core-request.ts";
import {
  chooseOutputToolName,
  createCallInstruction,
  parsePrompt,
  readOutputFormat,
} from "../../core/conversation.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import type { ClaudeRules, ClaudeReasoningFields } from "../../claude/claude-rules.ts";
import type {
  Conversation,
  Prompt,
  FunctionTool,
  RequestedTools,
} from "../../core/conversation.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import { isObject, listOf } from "../../core/json-value.ts";
import {
  getClaudeRules,
  toClaudeReasoningFields,
  toClaudeToolChoice,
} from "../../claude/claude-rules.ts";
import { toClaudeSchema } from "../../claude/json-schema.ts";
import { findImageProblem, isThinkingBlock, toClaudeMessages } from "./host-messages.ts";
import { hasCallsWithoutThought } from "../../claude/thoughts.ts";
import { CACHE_MARK } from "../../core/cache-marks.ts";
import { copyExactJson } from "../../../shared/exact-json.ts";

/** The way to request JSON output: by an instruction, a schema or a forced tool call. */
type JsonOutputMethod =
  | { readonly by: "words" }
  | { readonly by: "schema"; readonly schema: JsonObject }
  | { readonly by: "tool"; readonly schema: JsonObject; readonly name: string };

export function chooseJsonOutputMethod(
  body: ChatBody,
  rules: ClaudeRules,
): JsonOutputMethod | null {
  const format = readOutputFormat(body);
  if (format === "text") return null;
  if (format === "json") return { by: "words" };
  if (rules.jsonSchema === "native") return { by: "schema", ...format };
  return { by: "tool", ...format, name: chooseOutputToolName(body) };
}

type MessagesRequest = { readonly body: JsonObject; readonly beta: string | null };

/** The beta with which Claude drops thoughts after an edited message instead of returning 400. */
const BINDING_BETA = "thinking-binding-controls-2026-08-01";
const JSON_INSTRUCTION = "Answer with one JSON object and nothing else.";

const SENT_FIELD_PATHS: SentFieldPaths = {
  parallel_tool_calls: ["tool_choice.disable_parallel_tool_use"],
  prompt_cache_key: ["cache_control"],
  prompt_cache_options: ["cache_control"],
  prompt_cache_retention: ["cache_control"],
  reasoning_effort: ["thinking.budget_tokens", "output_config.effort"],
  stop: ["stop_sequences"],
  temperature: ["temperature"],
  top_p: ["top_p"],
};

type RequestParts = {
  readonly call: ChatCall;
  readonly rules: ClaudeRules;
  readonly prompt: Prompt;
};

/** Converts a chat call to a request for /v1/messages. Never sends `user`. */
export function toMessagesApiRequest(
  call: ChatCall,
  geo: "us" | null,
): MessagesRequest | ProviderFailure {
  const prompt = parsePrompt(call.body);
  if ("kind" in prompt) return prompt;
  const problem = findImageProblem(prompt.conversation.turns);
  if (problem !== null) return problem;
  const rules = getClaudeRules(call.upstreamId);
  const { body, beta } = requestBody({ call, rules, prompt });
  reportDroppedFields(call, body, SENT_FIELD_PATHS, true);
  return {
    beta,
    body: {
      ...body,
      ...(geo !== null && rules.acceptsInferenceGeo && { inference_geo: geo }),
      service_tier: "standard_only", // The priority tier has another price.
      ...(call.stream && { stream: true }),
    },
  };
}

function requestBody({ call, rules, prompt }: RequestParts): MessagesRequest {
  const { body, cap, upstreamId } = call;
  const { conversation: clientConversation, tools, stops, caches } = prompt;
  const json = chooseJsonOutputMethod(body, rules);
  const { fields, forced } = claudeToolFields(tools, rules, json, clientConversation);
  const needsThought =
    rules.thinking === "budget" && hasCallsWithoutThought(clientConversation.turns);
  const mayThink = !forced.isForced && !needsThought;
  const reasoning = toClaudeReasoningFields(rules, body.reasoning_effort, cap, mayThink);
  const conversation = addInstructions(
    clientConversation,
    json?.by === "words" ? JSON_INSTRUCTION : null,
    forced.words,
  );
  const { system, messages } = toClaudeMessages(conversation, reasoning.thinks);
  const bindsThoughts = rules.bindsThoughts && reasoning.thinks && hasThoughts(messages);
  return {
    beta: bindsThoughts ? BINDING_BETA : null,
    body: {
      model: upstreamId,
      max_tokens: cap,
      ...(system.length > 0 && { system }),
      messages,
      ...fields,
      ...thinkingOf(reasoning, bindsThoughts),
      ...outputConfig(reasoning, json),
      ...samplingFields(body, rules, reasoning),
      ...(stops.length > 0 && { stop_sequences: stops }),
      // The cache mark lasts 5 minutes, because an hour costs more.
      ...(caches && { cache_control: { type: "ephemeral" } }),
    },
  };
}

/**
 * Adds `standingInstructions` to the system text. Adds `turnInstruction` at the end, so that the
 * prompt cache and thoughts stay valid.
 */
function addInstructions(
  conversation: Conversation,
  standingInstructions: string | null,
  turnInstruction: string | null,
): Conversation {
  const system =
    standingInstructions === null
      ? conversation.system
      : [...conversation.system, standingInstructions];
  if (turnInstruction === null) return { ...conversation, system };
  const part = { kind: "text" as const, text: `<system>${turnInstruction}</system>` };
  const last = conversation.turns.at(-1);
  if (last?.role !== "user") {
    return {
      ...conversation,
      system,
      turns: [...conversation.turns, { role: "user", parts: [part] }],
    };
  }
  const turn = { role: last.role, parts: [...last.parts, part] };
  return { ...conversation, system, turns: [...conversation.turns.slice(0, -1), turn] };
}

function thinkingOf({ thinking }: ClaudeReasoningFields, bindsThoughts: boolean): JsonObject {
  if (thinking === undefined) return {};
  const binding = { block_binding: { prefix_mismatch_behavior: "drop_block" } };
  return { thinking: bindsThoughts ? { ...thinking, ...binding } : thinking };
}

function outputConfig(
  { output_config: effort }: ClaudeReasoningFields,
  json: JsonOutputMethod | null,
): JsonObject {
  if (json?.by !== "schema") return effort === undefined ? {} : { output_config: effort };
  const format = { type: "json_schema", schema: toClaudeSchema(json.schema) };
  return { output_config: { ...effort, format } };
}

/** Returns `temperature` (at most 1) or `top_p`. The host returns 400 for both together. */
function samplingFields(
  body: ChatBody,
  rules: ClaudeRules,
  { thinks }: ClaudeReasoningFields,
): JsonObject {
  const { temperature, top_p: topP } = body;
  if (!rules.acceptsSampling || thinks) return {};
  if (temperature !== undefined) return { temperature: Math.min(temperature, 1) };
  return topP === undefined ? {} : { top_p: topP };
}

function hasThoughts(messages: readonly JsonObject[]): boolean {
  return messages.some(({ content }) => listOf(content).filter(isObject).some(isThinkingBlock));
}

type ToolFields = { readonly tools?: readonly JsonObject[]; readonly tool_choice?: JsonObject };
type ToolForcing = { readonly isForced: boolean; readonly words: string | null };

const STRICT_TOOLS_MAX = 20;
const NO_INPUT: JsonObject = { type: "object", properties: {} };

function claudeToolFields(
  requested: RequestedTools,
  rules: ClaudeRules,
  json: JsonOutputMethod | null,
  { turns }: Conversation,
): { readonly fields: ToolFields; readonly forced: ToolForcing } {
  const toolsForHost = offeredTools(requested.list, rules);
  const choice = toolChoiceOf(requested, rules);
  if (json?.by === "tool" && typeof requested.choice === "string") {
    const tool = { name: json.name, input_schema: objectSchema(json.schema) };
    const isOnlyTool = requested.choice === "none" || toolsForHost.length === 0;
    return {
      fields: {
        tools: [...(isOnlyTool ? [] : toolsForHost), tool],
        tool_choice: {
          ...(isOnlyTool ? { type: "tool", name: json.name } : { type: "any" }),
          disable_parallel_tool_use: true,
        },
      },
      forced: { isForced: true, words: null },
    };
  }
  if (toolsForHost.length > 0) {
    return { fields: { tools: toolsForHost, ...choice.field }, forced: choice.forced };
  }
  // A conversation with calls must list their tools, even if none can be called.
  const calledNames = new Set(
    turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === "call" ? part.name : []))),
  );
  const tools = [...calledNames].map((name) => ({ name, input_schema: NO_INPUT }));
  const fields = tools.length === 0 ? {} : { tools, tool_choice: { type: "none" } };
  return { fields, forced: { isForced: false, words: null } };
}

function objectSchema(schema: JsonObject): JsonObject {
  return copyExactJson(schema, { ...schema, type: "object" });
}

function offeredTools(list: readonly FunctionTool[], rules: ClaudeRules): JsonObject[] {
  const strictCount = list.filter((tool) => tool.strict).length;
  const keepsStrict = rules.jsonSchema === "native" && strictCount <= STRICT_TOOLS_MAX;
  return list.map((tool) => {
    const schema = objectSchema(tool.parameters);
    const isStrict = tool.strict && keepsStrict;
    return {
      name: tool.name,
      ...(tool.description !== "" && { description: tool.description }),
      input_schema: isStrict ? toClaudeSchema(schema) : schema,
      ...(isStrict && { strict: true }),
      ...(tool.isMarked && CACHE_MARK),
    };
  });
}

function toolChoiceOf(
  { choice, parallel }: RequestedTools,
  rules: ClaudeRules,
): { readonly field: ToolFields; readonly forced: ToolForcing } {
  if (choice === "none") {
    return { field: { tool_choice: { type: "none" } }, forced: { isForced: false, words: null } };
  }
  const isForced = choice !== "auto" && rules.canForceTools;
  const words = isForced || choice === "auto" ? null : createCallInstruction(choice);
  const sentChoice = toClaudeToolChoice(isForced ? choice : "auto");
  const toolChoice = parallel ? sentChoice : { ...sentChoice, disable_parallel_tool_use: true };
  const isDefault = parallel && !isForced;
  return { field: isDefault ? {} : { tool_choice: toolChoice }, forced: { isForced, words } };
}
