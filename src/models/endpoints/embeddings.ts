import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import { encodeEmbeddings } from "../core/embedding-encoding.ts";
import { openAiInputUsage } from "../core/openai-usage.ts";
import { parseEmbeddingsRequest } from "../core/embeddings.ts";
import { paramOfInput } from "../core/endpoint-adapter.ts";
import type { ParsedRequest, EndpointAdapter } from "../core/endpoint-adapter.ts";

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
