import type { AiBinding } from "../../shared/config/config.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import { createBatchEmbedder, isVector, toEmbeddingList } from "../core/embedding-batches.ts";
import { createHttpProvider, createConnectionFailure } from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { listOf, objectOf } from "../core/json-value.ts";
import { toBase64 } from "../core/data-url.ts";
import { toSecondsUsage } from "../core/transcription.ts";
import { toTranscriptionEvents } from "../core/media-reader.ts";
import { isProviderFailure } from "../core/provider.ts";
import type {
  ProviderCallOfKind,
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  Provider,
  ProviderCall,
  ProviderFailure,
} from "../core/provider.ts";
import { createSseReader } from "../core/frame-reader.ts";
import { readWorkersAiChat, WorkersAiStream } from "../protocols/workers-ai/answer.ts";
import {
  parseWorkersAiFailure,
  findWorkersAiFailure,
  parseWorkersAiException,
} from "../protocols/workers-ai/failure.ts";
import {
  getWorkersAiModelFamily,
  toWorkersAiChatInputs,
  workersAiIgnoresEffortNone,
} from "../protocols/workers-ai/request.ts";

const ID = "workers-ai";
const TEXTS_MAX = 100;

/** Workers AI, called through the binding `AI`. It needs no key and guarantees no region. */
export const WORKERS_AI_PROVIDER: BuiltInProvider = {
  id: ID,
  variables: ["AI"],
  isSet: ({ ai }) => ai !== undefined,
  tags: () => ["global"],
  problems: () => [],
  build: ({ ai }) =>
    createWorkersAiProvider(ai ?? { run: () => Promise.reject(new Error("no binding")) }),
};

export function createWorkersAiProvider(ai: AiBinding): Provider {
  return { ...createHttpProvider(createProtocol(ai)), ignoresNone: workersAiIgnoresEffortNone };
}

function createProtocol(ai: AiBinding): ProviderHandlers {
  return {
    id: ID,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const inputs = toWorkersAiChatInputs(call);
        return isProviderFailure(inputs) ? inputs : runModel(ai, call, inputs);
      },
      convertResponse: readWorkersAiChat,
    },
    embeddings: {
      sendInParts: createBatchEmbedder(TEXTS_MAX),
      send: (call) => runModel(ai, call, embeddingInputs(call)),
      convertResponse: readEmbeddings,
    },
    transcription: {
      send: (call) => runModel(ai, call, transcriptionInputs(call)),
      convertResponse: readTranscription,
      events: toTranscriptionEvents,
    },
    failureInBody: findWorkersAiFailure,
    failure: parseWorkersAiFailure,
    reader: (call) => createSseReader(new WorkersAiStream(call.cap)),
  };
}

async function runModel(
  ai: AiBinding,
  call: ProviderCall,
  inputs: JsonObject,
): Promise<Response | ProviderFailure> {
  call.onDispatch?.();
  try {
    const options = { returnRawResponse: true, signal: call.signal };
    const response = await ai.run(call.upstreamId, inputs, options);
    return response instanceof Response ? response : { kind: "retry", reason: "no_response" };
  } catch (error) {
    return (
      (call.signal.aborted ? null : parseWorkersAiException(error)) ?? createConnectionFailure(call)
    );
  }
}

function transcriptionInputs({ body, onDropped }: ProviderCallOfKind<"transcription">): JsonObject {
  const { file, language, prompt, temperature } = body;
  if (temperature !== undefined) onDropped?.(["temperature"]);
  return {
    audio: toBase64(file.bytes),
    ...(language !== undefined && { language }),
    ...(prompt !== undefined && { initial_prompt: prompt }),
  };
}

function readTranscription({ text, transcription_info: info }: JsonObject) {
  if (typeof text !== "string") return null;
  const { duration } = objectOf(info);
  return { body: { text }, usage: toSecondsUsage(duration) };
}

function embeddingInputs({ body, upstreamId }: EmbeddingsCall): JsonObject {
  const { pooling } = getWorkersAiModelFamily(upstreamId);
  return { text: body.input, ...(pooling !== undefined && { pooling }) };
}

function readEmbeddings(
  { data, pooling: returnedPooling }: JsonObject,
  call: EmbeddingsCall,
): ProviderResponse | ProviderFailure | null {
  const { pooling } = getWorkersAiModelFamily(call.upstreamId);
  const hasOtherPooling =
    typeof returnedPooling === "string" && returnedPooling !== (pooling ?? returnedPooling);
  const vectors = listOf(data);
  const list = toEmbeddingList(vectors, call, null);
  if (list === null || hasOtherPooling) return null;
  const { dimensions } = call.body;
  const other = vectors.filter(isVector).find(({ length }) => length !== (dimensions ?? length));
  return other === undefined ? list : dimensionsFailure(other.length);
}

function dimensionsFailure(length: number): ProviderFailure {
  const message = `This model only returns vectors with ${length} dimensions.`;
  return { kind: "refused", reason: "dimensions", message, param: "dimensions" };
}
