import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { listModels } from "./catalog.ts";
import type { Catalog } from "./catalog.ts";

/** GET /v1/models: what is live in this region, aliases included; also at zero balance. */
export function listModelsRoute(c: Context<AppEnv>, catalog: Catalog): Response {
  return c.json({ object: "list", data: listModels(catalog) });
}

/** GET /v1/models/{id}, with or without its maker, the id's slash encoded or raw; 404 model_not_found. */
export function readModelRoute(c: Context<AppEnv>, catalog: Catalog): Response {
  const name = c.req.param("id") ?? "";
  const id = catalog.bareNames.get(name) ?? name;
  const model = listModels(catalog).find((entry) => entry.id === id);
  if (model === undefined) {
    return fail(c, { kind: "model_not_found", model: name });
  }
  return c.json(model);
}
