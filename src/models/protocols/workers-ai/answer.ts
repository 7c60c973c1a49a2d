import { parseJson } from "../../../shared/exact-json.ts";
import type { Usage } from "../../../shared/usage.ts";
import { toCompletion, textOfOutputParts } from "../../core/output-part.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import type { OutputPart, OutputCall } from "../../core/output-part.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import { argumentsText, incompleteFailure } from "../../core/chat-message.ts";
import { readUsage } from "../../core/chat-usage.ts";
import type {
  ProviderResponse,
  JsonObject,
  ChatCall,
  ProviderFailure,
} from "../../core/provider.ts";
import { failureWithUsage } from "../../core/failed-usage.ts";
import { parseTools } from "../../core/tools.ts";
import { readWorkersAiPiece } from "./piece.ts";
import type { StreamedCall } from "./piece.ts";

/** Converts a response in OpenAI's or Workers AI's format. Returns null if it is invalid. */
export function readWorkersAiChat(
  response: JsonObject,
  call: ChatCall,
): ProviderResponse | ProviderFailure | null {
  const raw = isObject(response["result"]) ? response["result"] : response;
  const { choices, usage: rawUsage } = raw;
  const isAnswer = listOf(choices).length > 0 || "response" in raw || "tool_calls" in raw;
  if (!isAnswer) return null;
  const { text, reasoning, calls, finish } = readWorkersAiPiece(raw);
  const namedCalls = calls.filter((one) => one.name !== "").map(toOutputCall);
  const leakedToolCalls = namedCalls.length === 0 ? leakedCalls(text, call) : [];
  const tools = leakedToolCalls.length > 0 ? leakedToolCalls : namedCalls;
  const usage = readUsage(rawUsage);
  const parts: OutputPart[] = [
    { kind: "text", text },
    { kind: "thought", text: reasoning },
    ...tools,
  ];
  if (finish === "error" || finish === "abort") {
    return failureWithUsage(incompleteFailure(finish), { usage, text: textOfOutputParts(parts) });
  }
  const reason = tools.length > 0 ? "stop" : (finish ?? guessFinishReason(usage, call.cap));
  const remainingParts = leakedToolCalls.length > 0 ? parts.slice(1) : parts;
  return toCompletion([[...remainingParts, { kind: "finish", reason }]], usage);
}

function toOutputCall({
  id,
  name,
  arguments: argumentsJson,
}: Omit<StreamedCall, "index">): OutputCall {
  return { kind: "call", id, name, arguments: argumentsJson };
}

/** Guesses the finish reason, which Workers AI omits. Output that reaches the cap was cut off. */
export function guessFinishReason(usage: Usage | null, cap: number | null): FinishReason {
  return usage !== null && cap !== null && usage.output >= cap ? "length" : "stop";
}

/** Some models (gpt-oss) write tool calls as text if they must call a tool. */
function leakedCalls(text: string, call: ChatCall): readonly OutputCall[] {
  const tools = parseTools(call.body);
  if ("kind" in tools || tools.choice === "auto" || tools.choice === "none") return [];
  const names = new Set<unknown>(tools.list.map((tool) => tool.name));
  const parsedCalls = parsedList(text);
  if (!parsedCalls.every((one) => isObject(one) && names.has(one["name"]))) return [];
  return parsedCalls.filter(isObject).map(({ name, arguments: given, parameters, ...rest }) => {
    const argumentsJson = argumentsText(given ?? parameters ?? rest);
    return toOutputCall({ id: "", name: textOf(name), arguments: argumentsJson });
  });
}

function parsedList(text: string): readonly unknown[] {
  try {
    const value: unknown = parseJson(text);
    return Array.isArray(value) ? value : [value];
  } catch {
    return [];
  }
}
