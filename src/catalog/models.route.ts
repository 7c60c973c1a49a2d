import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { parseQuery } from "../http/parse-body.ts";
import { findModel, listModels } from "./catalog.ts";
import type { Catalog } from "./catalog.ts";
import { messagesList, messagesListQuery, messagesModel } from "./messages-list.ts";

/**
 * GET /v1/models: what is live in this region, aliases included; also at zero balance. Clients of the
 * Messages dialect get their own list, in pages.
 */
export function listModelsRoute(c: Context<AppEnv>, catalog: Catalog): Response {
  const models = listModels(catalog);
  const query = parseQuery(messagesListQuery, c.req.url);
  if (!query.ok) return fail(c, query.failure);
  if (!speaksMessages(c)) return c.json({ object: "list", data: models });
  return c.json(messagesList(models, query.value));
}

/** Who says a version of that dialect, or was admitted by the key that it brings as that dialect does. */
export function speaksMessages(c: Context<AppEnv>): boolean {
  if ((c.req.header("anthropic-version") ?? "") !== "") return true;
  const isBearer = /^bearer svc_/i.test(c.req.header("authorization") ?? "");
  return !isBearer && (c.req.header("x-api-key") ?? "").trim() !== "";
}

/** GET /v1/models/{id}, by any name that a completion may say, the slash encoded or raw; 404 model_not_found. */
export function readModelRoute(c: Context<AppEnv>, catalog: Catalog): Response {
  const name = c.req.param("id") ?? "";
  const model = findModel(catalog, name);
  if (model === undefined) {
    return fail(c, { kind: "model_not_found", model: name });
  }
  return c.json(speaksMessages(c) ? messagesModel(model) : model);
}
