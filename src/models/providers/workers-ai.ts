import type { AiBinding } from "../../shared/config/config.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import { embeddingList, batchEmbedder, inputTexts } from "../core/embedding-batches.ts";
import { httpProvider, connectionFailure } from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { listOf, objectOf } from "../core/json-value.ts";
import { toBase64 } from "../core/data-url.ts";
import { usageOfSeconds } from "../core/transcription.ts";
import { transcriptEvents } from "../core/media-reader.ts";
import { isFailure } from "../core/provider.ts";
import type {
  ProviderCallOf,
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  Provider,
  ProviderCall,
  ProviderFailure,
} from "../core/provider.ts";
import { sseReader } from "../core/frame-reader.ts";
import { readWorkersAiChat, WorkersAiStream } from "../protocols/workers-ai/answer.ts";
import {
  workersAiFailure,
  workersAiFailureInside,
  workersAiThrownFailure,
} from "../protocols/workers-ai/failure.ts";
import {
  workersAiFamilyOf,
  workersAiChatInputs,
  workersAiIgnoresNoEffort,
} from "../protocols/workers-ai/request.ts";

const ID = "workers-ai";
const TEXTS_MAX = 100;

/** Workers AI, called through the binding `AI`. It needs no key and guarantees no region. */
export const WORKERS_AI: BuiltInProvider = {
  id: ID,
  variables: ["AI"],
  isSet: ({ ai }) => ai !== undefined,
  tags: () => ["global"],
  problems: () => [],
  build: ({ ai }) => workersAi(ai ?? { run: () => Promise.reject(new Error("no binding")) }),
};

export function workersAi(ai: AiBinding): Provider {
  return { ...httpProvider(createProtocol(ai)), ignoresNone: workersAiIgnoresNoEffort };
}

function createProtocol(ai: AiBinding): ProviderHandlers {
  return {
    id: ID,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const inputs = workersAiChatInputs(call);
        return isFailure(inputs) ? inputs : runModel(ai, call, inputs);
      },
      convertResponse: readWorkersAiChat,
    },
    embeddings: {
      sendInParts: batchEmbedder(TEXTS_MAX),
      send: (call) => runModel(ai, call, embeddingInputs(call)),
      convertResponse: readEmbeddings,
    },
    transcription: {
      send: (call) => runModel(ai, call, transcriptionInputs(call)),
      convertResponse: readTranscription,
      events: transcriptEvents,
    },
    failureInBody: workersAiFailureInside,
    failure: workersAiFailure,
    reader: (call) => sseReader(new WorkersAiStream(call.cap)),
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
    return (call.signal.aborted ? null : workersAiThrownFailure(error)) ?? connectionFailure(call);
  }
}

function transcriptionInputs({ body, onDropped }: ProviderCallOf<"transcription">): JsonObject {
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
  return { body: { text }, usage: usageOfSeconds(duration) };
}

function embeddingInputs({ body, upstreamId }: EmbeddingsCall): JsonObject {
  const { pooling } = workersAiFamilyOf(upstreamId);
  return { text: body.input, ...(pooling !== undefined && { pooling }) };
}

function readEmbeddings(
  raw: JsonObject,
  call: EmbeddingsCall,
): ProviderResponse | ProviderFailure | null {
  const { data, pooling: returnedPooling } = raw;
  const vectors = listOf(data);
  const { pooling } = workersAiFamilyOf(call.upstreamId);
  const hasOtherPooling =
    typeof returnedPooling === "string" && returnedPooling !== (pooling ?? returnedPooling);
  if (vectors.length !== inputTexts(call).length || hasOtherPooling) return null;
  const { dimensions } = call.body;
  for (const vector of vectors) {
    if (!Array.isArray(vector) || vector.length === 0) return null;
    if (!vector.every((value) => typeof value === "number")) return null;
    if (dimensions !== undefined && dimensions !== vector.length) {
      return dimensionsFailure(vector.length);
    }
  }
  return embeddingList(vectors, null);
}

function dimensionsFailure(length: number): ProviderFailure {
  const message = `This model's vectors have ${length} dimensions, and no others.`;
  return { kind: "refused", reason: "dimensions", message, param: "dimensions" };
}
