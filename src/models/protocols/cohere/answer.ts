import type { Usage } from "../../../shared/usage.ts";
import { toEmbeddingList } from "../../core/embedding-batches.ts";
import {
  isObject,
  listOf,
  textOf,
  readAnyValue,
  createListReader,
  createOptionalReader,
  createObjectReader,
} from "../../core/json-value.ts";
import type {
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  ProviderFailure,
  StreamEvent,
  RerankCall,
} from "../../core/provider.ts";
import {
  toFinishReason,
  toCompletion,
  joinTextOfOutputParts,
  ChunkBuilder,
} from "../../core/output-part.ts";
import type { FinishReason, OutputPart } from "../../core/output-part.ts";
import {
  addUsageToFailure,
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { discardUsageWithoutPrompt, readTokenCount } from "../../core/openai-usage.ts";
import { parseRankedResponse, toRerankUsage } from "../../core/ranked.ts";

/**
 * Reads a tool call or a piece of a call. Cohere sends empty arguments as null or the text "null".
 */
const readCohereCall = createObjectReader({
  id: textOf,
  function: createObjectReader({ name: textOf, arguments: toArgumentsJson }),
});
const readCoherePart = createObjectReader({ text: textOf, thinking: textOf });
const readMessage = createObjectReader({
  tool_plan: textOf,
  content: createListReader(readCoherePart),
  tool_calls: createListReader(readCohereCall),
});
const readAnswer = createObjectReader({
  message: createOptionalReader(readMessage),
  finish_reason: readAnyValue,
  usage: readAnyValue,
});

export function readCohereChat(raw: JsonObject): ProviderResponse | ProviderFailure | null {
  const { message, finish_reason: rawReason, usage: rawUsage } = readAnswer(raw);
  if (message === null) return null;
  const reason = parseCohereFinishReason(rawReason);
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
    return addUsageToFailure(createCohereFinishFailure(rawReason), {
      usage,
      text: joinTextOfOutputParts(parts),
    });
  }
  return toCompletion([[...parts, { kind: "finish", reason }]], usage);
}

function toArgumentsJson(raw: unknown): string {
  if (isObject(raw)) return JSON.stringify(raw);
  return raw === "null" ? "" : textOf(raw);
}

const readBilledUnits = createObjectReader({
  billed_units: createObjectReader({ input_tokens: readTokenCount, output_tokens: readTokenCount }),
});

/** Reads the billed usage. Ignores `tokens`, which also counts Cohere's own instructions. */
export function readCohereUsage(raw: unknown): Usage | null {
  const { input_tokens: input, output_tokens: output } = readBilledUnits(raw).billed_units;
  if (input === null || output === null) return null;
  return discardUsageWithoutPrompt({ input, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 });
}

/** Converts a finish reason. Returns null if it is missing or means a failure (ERROR, TIMEOUT). */
function parseCohereFinishReason(raw: unknown): FinishReason | null {
  return typeof raw === "string" ? toFinishReason(raw) : null;
}

/**
 * Returns the failure for a bad finish reason. An ERROR doesn't count against the provider, because
 * the request may have caused it.
 */
export function createCohereFinishFailure(raw: unknown): ProviderFailure {
  if (textOf(raw).startsWith("ERROR")) {
    return { kind: "retry", reason: "broken_off", fault: "request" };
  }
  return { kind: "retry", reason: raw === "TIMEOUT" ? "timeout" : "broken_off" };
}

const readEmbeddingsResponse = createObjectReader({
  embeddings: createObjectReader({ float: listOf }),
  meta: readAnyValue,
});

export function readCohereEmbeddings(
  raw: JsonObject,
  call: EmbeddingsCall,
): ProviderResponse | null {
  const { embeddings, meta } = readEmbeddingsResponse(raw);
  return toEmbeddingList(embeddings.float, call, readBilledUnits(meta).billed_units.input_tokens);
}

const readEvent = createObjectReader({
  type: textOf,
  message: readAnyValue,
  delta: createObjectReader({
    message: createObjectReader({
      content: readCoherePart,
      tool_plan: textOf,
      tool_calls: (raw) => readCohereCall(Array.isArray(raw) ? raw[0] : raw),
    }),
    finish_reason: readAnyValue,
    usage: readAnyValue,
    error: textOf,
  }),
});
type Event = ReturnType<typeof readEvent>;

/** Reads a stream of POST /v2/chat, which ends with `message-end`. Tool calls don't overlap. */
export class CohereStream extends FrameReader {
  readonly #builder = new ChunkBuilder();

  protected get isFinished(): boolean {
    return this.#builder.finished;
  }

  protected convertFrame(raw: JsonObject, name: string): StreamEvent[] {
    const streamEvent = readEvent(raw);
    return this.#event(streamEvent.type === "" ? { ...streamEvent, type: name } : streamEvent);
  }

  #event({ type, delta, message: text }: Event): StreamEvent[] {
    const { message } = delta;
    switch (type) {
      case "message-start":
        return this.#builder.begin();
      case "content-start":
      case "content-delta":
        return [
          ...this.#builder.addReasoning(message.content.thinking),
          ...this.#builder.addText(message.content.text),
        ];
      case "tool-plan-delta":
        return this.#builder.addText(message.tool_plan);
      case "tool-call-start":
      case "tool-call-delta":
        return this.#toolCall(type === "tool-call-start", message.tool_calls);
      case "message-end":
        return this.#end(delta);
      case "message": // An error has no type, only an ID and a text.
        return typeof text === "string"
          ? createFailureEvents(createRetryableFailure("error_event"))
          : [];
      default:
        return [];
    }
  }

  #toolCall(
    isStart: boolean,
    { id, function: called }: ReturnType<typeof readCohereCall>,
  ): StreamEvent[] {
    return [
      ...(isStart ? this.#builder.addTool(id, called.name) : []),
      ...this.#builder.addToolArguments(called.arguments),
    ];
  }

  #end({ finish_reason: rawReason, usage: rawUsage, error }: Event["delta"]): StreamEvent[] {
    const finish = parseCohereFinishReason(rawReason);
    const usage = readCohereUsage(rawUsage);
    if (finish === null || error !== "") {
      return createFailureEvents(createCohereFinishFailure(rawReason), usage);
    }
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.#builder.finish(finish), ...usageEvents, STREAM_END_EVENT];
  }
}

export function toCohereRerankRequest({ body, upstreamId }: RerankCall): JsonObject {
  const { query, documents, top_n, max_tokens_per_doc } = body;
  return { model: upstreamId, query, documents, top_n, max_tokens_per_doc };
}

const responseReader = createObjectReader({
  results: listOf,
  meta: createObjectReader({
    billed_units: createObjectReader({
      search_units: readTokenCount,
      input_tokens: readTokenCount,
    }),
  }),
});

/** Converts a rerank response. Cohere bills some models by search units and others by tokens. */
export function readCohereRerank(raw: JsonObject, { body }: RerankCall): ProviderResponse | null {
  const { results, meta } = responseReader(raw);
  const { search_units: searchUnits, input_tokens: tokens } = meta.billed_units;
  return parseRankedResponse(results, body, toRerankUsage({ searchUnits, tokens }));
}
