import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { embeddingList, inputTexts } from "../../core/embedding-batches.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import type {
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  ProviderFailure,
} from "../../core/provider.ts";
import { finishReasonOf } from "../../core/finish-reason.ts";
import { toCompletion, textOfOutputParts } from "../../core/output-part.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { anyValue, listReader, optionalReader, objectReader } from "../../core/shape.ts";
import { failureWithUsage } from "../../core/failed-usage.ts";
import { countedUsage, tokenCount } from "../../core/token-count.ts";
import { isVector } from "../../core/embedding-encoding.ts";

/** Reads a tool call or a piece of one. Cohere sends empty arguments as null or the text "null". */
export const readCohereCall = objectReader({
  id: textOf,
  function: objectReader({ name: textOf, arguments: toArgumentsJson }),
});
export const readCoherePart = objectReader({ text: textOf, thinking: textOf });
const readMessage = objectReader({
  tool_plan: textOf,
  content: listReader(readCoherePart),
  tool_calls: listReader(readCohereCall),
});
const readAnswer = objectReader({
  message: optionalReader(readMessage),
  finish_reason: anyValue,
  usage: anyValue,
});

export function readCohereChat(raw: JsonObject): ProviderResponse | ProviderFailure | null {
  const { message, finish_reason: rawReason, usage: rawUsage } = readAnswer(raw);
  if (message === null) return null;
  const reason = cohereFinishReason(rawReason);
  const usage = readCohereUsage(rawUsage);
  const parts: OutputPart[] = [
    { kind: "text", text: message.tool_plan },
    ...message.content.flatMap(({ text, thinking }): OutputPart[] => [
      { kind: "text", text },
      { kind: "thought", text: thinking },
    ]),
    ...message.tool_calls.map(
      ({ id, function: { name, arguments: argumentsJson } }): OutputPart => {
        return { kind: "call", id, name, arguments: argumentsJson };
      },
    ),
  ];
  if (reason === null) {
    return failureWithUsage(cohereGaveUpFailure(rawReason), {
      usage,
      text: textOfOutputParts(parts),
    });
  }
  return toCompletion([[...parts, { kind: "finish", reason }]], usage);
}

function toArgumentsJson(raw: unknown): string {
  if (isObject(raw)) return JSON.stringify(raw);
  return raw === "null" ? "" : textOf(raw);
}

const readBilledUnits = objectReader({
  billed_units: objectReader({ input_tokens: tokenCount, output_tokens: tokenCount }),
});

/** Reads the billed usage. `tokens` is larger, because it includes Cohere's own instructions. */
export function readCohereUsage(raw: unknown): Usage | null {
  const { input_tokens: input, output_tokens: output } = readBilledUnits(raw).billed_units;
  if (input === null || output === null) return null;
  return countedUsage({ input, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 });
}

/** Converts a finish reason. Returns null if it is missing or means a failure (ERROR, TIMEOUT). */
export function cohereFinishReason(raw: unknown): FinishReason | null {
  return typeof raw === "string" ? finishReasonOf(raw) : null;
}

/** Returns the failure for a bad finish reason. The request may have caused an ERROR. */
export function cohereGaveUpFailure(raw: unknown): ProviderFailure {
  if (textOf(raw).startsWith("ERROR")) {
    return { kind: "retry", reason: "broken_off", fault: "request" };
  }
  return { kind: "retry", reason: raw === "TIMEOUT" ? "timeout" : "broken_off" };
}

const readEmbeddingsResponse = objectReader({
  embeddings: objectReader({ float: listOf }),
  meta: anyValue,
});

export function readCohereEmbeddings(
  raw: JsonObject,
  embeddingsCall: EmbeddingsCall,
): ProviderResponse | null {
  const { embeddings, meta } = readEmbeddingsResponse(raw);
  const { float: vectors } = embeddings;
  if (vectors.length !== inputTexts(embeddingsCall).length || !vectors.every(isVector)) return null;
  const { input_tokens: input } = readBilledUnits(meta).billed_units;
  return embeddingList(vectors, input === null ? null : { ...NO_USAGE, input });
}
