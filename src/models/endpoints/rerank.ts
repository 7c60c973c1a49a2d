import { costFields } from "../../shared/money.ts";
import type { Usage } from "../../shared/usage.ts";
import { isObject, listOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseRerankRequest } from "../core/rerank.ts";
import { inputEndpoint } from "./input-endpoint.ts";

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
