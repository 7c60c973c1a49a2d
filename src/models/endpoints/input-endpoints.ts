import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { KINDS } from "../../shared/kinds.ts";
import type { InputKind } from "../../shared/kinds.ts";
import { paramOfInput } from "../core/endpoint-adapter.ts";
import type { EndpointAdapter, ResponseWriter, ParsedRequest } from "../core/endpoint-adapter.ts";
import type { InputRequest } from "../core/kinds.ts";
import { costFields } from "../../shared/money.ts";
import { encodeEmbeddings } from "../core/embedding-batches.ts";
import { openAiInputUsage } from "../core/openai-usage.ts";
import { parseEmbeddingsRequest } from "../core/embeddings.ts";
import type { Usage } from "../../shared/usage.ts";
import { isObject, listOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseRerankRequest } from "../core/rerank.ts";
import { parseModerationRequest } from "../core/moderation.ts";
import { parseOcrRequest } from "../core/ocr.ts";

type ParsedBody = { readonly user: string | null };

type InputEndpoint<P> = Pick<EndpointAdapter, "name" | "takesForms"> & {
  readonly kind: InputKind;
  /** The field with the input, for errors about its length. */
  readonly input: string;
  readonly path?: EndpointAdapter["path"];
  readonly idPrefix?: string;
  readonly parse: (body: object) => Result<P>;
  readonly request: (parsed: P) => InputRequest;
  readonly reply: (parsed: P) => ResponseWriter;
};

export function inputEndpoint<P extends ParsedBody>(given: InputEndpoint<P>): EndpointAdapter {
  const {
    name,
    kind,
    input,
    path,
    takesForms,
    idPrefix = "chatcmpl-",
    parse,
    request,
    reply,
  } = given;
  return {
    name,
    path: path ?? KINDS[kind].path,
    dialect: null,
    idPrefix,
    ...(takesForms && { takesForms }),
    parse: (value) => {
      const parsed = parse(value);
      if (!parsed.ok) return parsed;
      return success({
        request: request(parsed.value),
        user: parsed.value.user,
        dropped: [],
        paramOf: paramOfInput(input),
        reply: reply(parsed.value),
        native: null,
      });
    },
  };
}

export const embeddingsEndpoint: EndpointAdapter = {
  name: "embeddings",
  path: "/v1/embeddings",
  dialect: null,
  idPrefix: "embd-",
  parse,
};

function parse(value: object): Result<ParsedRequest> {
  const parsed = parseEmbeddingsRequest(value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const encoding = body.encoding_format ?? "float";
  return success({
    request: { kind: "embeddings", body },
    user: body.user ?? null,
    dropped: [],
    paramOf: paramOfInput("input"),
    reply: {
      kind: "json",
      json: (answer, { id, model, usage, costMicro }) => ({
        id, // for Mistral's SDKs
        object: "list",
        data: encodeEmbeddings(answer["data"], encoding),
        model,
        usage: { ...openAiInputUsage(usage), ...costFields(costMicro) },
      }),
    },
    native: null,
  });
}

export const rerankEndpoint = inputEndpoint({
  name: "rerank",
  input: "documents",
  kind: "rerank",
  idPrefix: "rerank-",
  parse: parseRerankRequest,
  request: ({ body }) => ({ kind: "rerank", body }),
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

export const moderationsEndpoint = inputEndpoint({
  name: "moderations",
  input: "input",
  kind: "moderation",
  idPrefix: "modr-",
  parse: parseModerationRequest,
  request: ({ body }) => ({ kind: "moderation", body }),
  reply: () => ({
    kind: "json",
    json: ({ results }, { id, model, costMicro }) => ({
      id,
      model,
      results,
      usage: costFields(costMicro),
    }),
  }),
});

export const ocrEndpoint = inputEndpoint({
  name: "ocr",
  input: "document",
  kind: "ocr",
  parse: parseOcrRequest,
  request: ({ body }) => ({ kind: "ocr", body }),
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
