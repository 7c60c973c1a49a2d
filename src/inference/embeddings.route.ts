import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { resolveModel } from "../catalog/catalog.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { ableToEmbed } from "./able-routes.ts";
import { answerPaid } from "./paid.route.ts";
import { parseEmbeddingsRequest } from "./embeddings-request.ts";
import type { PaidRequest } from "./paid-request.ts";
import { embeddingsPromptSize } from "./prompt-size.ts";
import { costBounds } from "./worst-cost.ts";

/** POST /v1/embeddings. */
export function embeddingsRoute(c: Context<AppEnv>): Promise<Response> | Response {
  return answerPaid(c, preparedEmbeddings);
}

/** Checks, resolves the model and bounds the cost. Failures: 400 with `param`, 404 model_not_found. */
export function preparedEmbeddings(body: object, catalog: Catalog): Result<PaidRequest> {
  const parsed = parseEmbeddingsRequest(body);
  if (!parsed.ok) return parsed;
  const embeddings = parsed.value;
  const resolved = resolveModel(catalog, embeddings.model, "embeddings");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const routes = ableToEmbed(model, embeddings.body);
  if (!routes.ok) return routes;
  const prompt = embeddingsPromptSize(embeddings.body, model);
  return success({
    kind: "embeddings",
    body: embeddings.body,
    model,
    routes: routes.value,
    stream: false,
    includeUsage: false,
    encoding: embeddings.encoding,
    user: embeddings.user,
    prompt,
    cap: null,
    bounds: costBounds(routes.value, prompt, null),
  });
}
