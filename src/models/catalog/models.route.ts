import type { Context } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { parseQuery } from "../../shared/http/parse-body.ts";
import type { Result } from "../../shared/failure.ts";
import { allowsModel } from "../../shared/key-terms.ts";
import { findModel, listModels } from "./catalog.ts";
import type { Catalog, CallerCatalog } from "./catalog.ts";
import { messagesList, messagesListQuery, messagesModel } from "./messages-list.ts";

/**
 * GET /v1/models: what is live in this region at the caller's own prices, aliases included; also at zero balance; of a session what it may use.
 * Clients of the Messages dialect get their own list, in pages.
 */
export function listModelsRoute(c: Context<AppEnv>, sold: Result<CallerCatalog>): Response {
  if (!sold.ok) return fail(c, sold.failure);
  const { catalog } = sold.value;
  const models = listModels(sold.value).filter(({ id }) => mayUse(c, catalog, id));
  const query = parseQuery(messagesListQuery, c.req.url);
  if (!query.ok) return fail(c, query.failure);
  if (!isMessagesClient(c.req)) return c.json({ object: "list", data: models });
  return c.json(messagesList(models, query.value));
}

/** Who says a version of that dialect, or was admitted by the key that it brings as that dialect does. */
export function isMessagesClient(request: Asking): boolean {
  if ((request.header("anthropic-version") ?? "") !== "") return true;
  const isBearer = /^bearer svc_/i.test(request.header("authorization") ?? "");
  return !isBearer && (request.header("x-api-key") ?? "").trim() !== "";
}

/** A request, as far as its headers go. */
type Asking = { header(name: string): string | undefined };

/** Whether the models of the session that asks, where it is one, have this one, under a name that is listed. */
function mayUse(c: Context<AppEnv>, { aliases }: Catalog, name: string): boolean {
  const { session } = c.get("admitted").caller.shown ?? {};
  return (
    session === undefined || allowsModel(session, { sent: name, id: aliases.get(name) ?? name })
  );
}

/** GET /v1/models/{id}, by any name that a completion may say, the slash encoded or raw; 404 model_not_found, 403 model_not_allowed. */
export function readModelRoute(c: Context<AppEnv>, sold: Result<CallerCatalog>): Response {
  if (!sold.ok) return fail(c, sold.failure);
  const { catalog } = sold.value;
  const name = c.req.param("id") ?? "";
  const model = findModel(sold.value, name);
  if (model === undefined) {
    return fail(c, { kind: "model_not_found", model: name });
  }
  if (!mayUse(c, catalog, model.id)) return fail(c, { kind: "model_not_allowed", model: name });
  return c.json(isMessagesClient(c.req) ? messagesModel(model) : model);
}
