import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { CALL_KINDS } from "../../shared/kinds.ts";
import type { CallKindWithoutOutput } from "../../shared/kinds.ts";
import type { EndpointAdapter, ResponseWriter } from "../core/endpoint-adapter.ts";
import type { ParsedInputRequest } from "../core/input-kind.ts";
import type { InputRequest } from "../core/kinds.ts";
import { costFields } from "../../shared/money.ts";
import { encodeEmbeddings } from "../core/embedding-batches.ts";
import { toOpenAiInputUsage } from "../core/openai-usage.ts";
import { parseEmbeddingsRequest } from "../core/embeddings.ts";
import type { Usage } from "../../shared/usage.ts";
import { isObject, listOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseRerankRequest } from "../core/rerank.ts";
import { parseModerationRequest } from "../core/moderation.ts";
import { parseOcrRequest } from "../core/ocr.ts";

type InputEndpoint<P> = Pick<EndpointAdapter, "name" | "takesForms"> & {
  readonly kind: CallKindWithoutOutput;
  /** The name of the input field, for errors about the input's length. */
  readonly input: string;
  readonly path?: EndpointAdapter["path"];
  readonly idPrefix?: string;
  readonly parse: (body: object) => Result<P>;
  readonly reply: (parsed: P) => ResponseWriter;
};

export function createInputEndpoint<P extends ParsedInputRequest<InputRequest["body"]>>(
  endpoint: InputEndpoint<P>,
): EndpointAdapter {
  const { kind, input, parse, reply, ...rest } = endpoint;
  return {
    path: CALL_KINDS[kind].path,
    errorFormat: null,
    idPrefix: "chatcmpl-",
    ...rest,
    parse: (value) => {
      const parsed = parse(value);
      if (!parsed.ok) return parsed;
      const { body, user } = parsed.value;
      return success({
        request: { kind, body } as InputRequest,
        user,
        dropped: [],
        paramOf: (core) => {
          if (core === "max_tokens") return null;
          return core === "messages" ? input : core;
        },
        reply: reply(parsed.value),
        native: null,
      });
    },
  };
}

export const embeddingsEndpoint = createInputEndpoint({
  name: "embeddings",
  input: "input",
  kind: "embeddings",
  idPrefix: "embd-",
  parse: parseEmbeddingsRequest,
  reply: ({ body: { encoding_format: encoding = "float" } }) => ({
    kind: "json",
    json: (answer, { id, model, usage, costMicro }) => ({
      id, // Mistral's SDKs require an ID.
      object: "list",
      data: encodeEmbeddings(answer["data"], encoding),
      model,
      usage: { ...toOpenAiInputUsage(usage), ...costFields(costMicro) },
    }),
  }),
});

export const rerankEndpoint = createInputEndpoint({
  name: "rerank",
  input: "documents",
  kind: "rerank",
  idPrefix: "rerank-",
  parse: parseRerankRequest,
  reply: ({ body, returnsDocuments }) => {
    const documents = returnsDocuments ? body.documents : null;
    return {
      kind: "json",
      json: (answer, { id, model, usage, costMicro }) => ({
        id,
        model,
        results: listOf(answer["results"]).map((one) => withDocument(one, documents)),
        meta: { api_version: { version: "2" }, billed_units: billedUnits(usage) },
        usage: { total_tokens: usage.input, ...costFields(costMicro) },
      }),
    };
  },
});

function withDocument(ranked: unknown, documents: readonly string[] | null): unknown {
  if (documents === null || !isObject(ranked)) return ranked;
  return { ...ranked, document: { text: documents[Number(ranked["index"])] } };
}

function billedUnits({ input, search_unit: units }: Usage): JsonObject {
  return {
    ...(units !== undefined && { search_units: units }),
    ...(input > 0 && { input_tokens: input }),
  };
}

export const moderationsEndpoint = createInputEndpoint({
  name: "moderations",
  input: "input",
  kind: "moderation",
  idPrefix: "modr-",
  parse: parseModerationRequest,
  reply: () => ({
    kind: "json",
    json: ({ results }, { id, model, costMicro }) => {
      return { id, model, results, usage: costFields(costMicro) };
    },
  }),
});

export const ocrEndpoint = createInputEndpoint({
  name: "ocr",
  input: "document",
  kind: "ocr",
  parse: parseOcrRequest,
  reply: () => ({
    kind: "json",
    json: ({ pages, doc_size_bytes }, { model, usage: { page = 0 }, costMicro }) => ({
      pages,
      model,
      usage_info: { pages_processed: page, doc_size_bytes },
      usage: { pages: page, ...costFields(costMicro) },
    }),
  }),
});
