import type { Context } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { parseQuery } from "../../shared/http/parse-body.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import { findModel, listModels } from "./catalog.ts";
import type { CallerCatalog } from "./catalog.ts";
import type { ListedModel } from "./listed-model.ts";
import { toMessagesModelPage, messagesListQuerySchema, toMessagesModel } from "./listed-model.ts";

export function listModelsRoute(c: Context<AppEnv>, catalog: Result<CallerCatalog>): Response {
  if (!catalog.ok) return fail(c, catalog.failure);
  const models = listModels(catalog.value);
  const query = parseQuery(messagesListQuerySchema, c.req.url);
  if (!query.ok) return fail(c, query.failure);
  if (!isMessagesClient(c.req)) return c.json(openAiList(models));
  return c.json(toMessagesModelPage(models, query.value));
}

/** Adds the count and the link by which OpenRouter's SDK recognizes a complete list. */
function openAiList(data: readonly ListedModel[]) {
  return { object: "list", data, total_count: data.length, links: { next: null } };
}

/**
 * Reports whether a client uses Anthropic's API. Such a client sends `anthropic-version`, or its
 * key in `x-api-key`.
 */
export function isMessagesClient(request: { header(name: string): string | undefined }): boolean {
  if ((request.header("anthropic-version") ?? "") !== "") return true;
  const isBearer = /^bearer svc_/i.test(request.header("authorization") ?? "");
  return !isBearer && (request.header("x-api-key") ?? "").trim() !== "";
}

export function readModelRoute(c: Context<AppEnv>, catalog: Result<CallerCatalog>): Response {
  if (!catalog.ok) return fail(c, catalog.failure);
  const name = c.req.param("id") ?? "";
  const model = findModel(catalog.value, name);
  if (model === undefined) return fail(c, createUnlistedModelFailure(catalog.value, name));
  return c.json(isMessagesClient(c.req) ? toMessagesModel(model) : model);
}

export function createUnlistedModelFailure(sold: CallerCatalog, name: string): Failure {
  const isSold = findModel({ ...sold, policies: [] }, name) !== undefined;
  return { kind: isSold ? "model_not_allowed" : "model_not_found", model: name };
}
