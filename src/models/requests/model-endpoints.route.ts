import type { Context } from "hono";
import { findRoutes } from "../catalog/catalog.ts";
import type { CallerCatalog } from "../catalog/catalog.ts";
import { toListedEndpoint } from "../catalog/listed-model.ts";
import { createUnlistedModelFailure } from "../catalog/models.route.ts";
import { formatRouteName } from "../routing/route-health.ts";
import { readRouteSpeeds } from "../../events/metrics/region-speeds.ts";
import { now } from "../../shared/clock.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import type { Result } from "../../shared/failure.ts";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import type { RouteSpeed } from "../../shared/route-speed.ts";

/**
 * Handles GET /v1/models/{id}/endpoints: a model's providers in this region, with the caller's
 * prices and measured speeds.
 */
export async function modelEndpointsRoute(
  c: Context<AppEnv>,
  sale: Result<CallerCatalog>,
): Promise<Response> {
  if (!sale.ok) return fail(c, sale.failure);
  const name = c.req.param("id") ?? "";
  const found = findRoutes(sale.value, name);
  if (found === undefined) return fail(c, createUnlistedModelFailure(sale.value, name));
  const { listed, model } = found;
  const { id, created, architecture } = listed;
  const speeds = await regionSpeeds(c);
  const endpoints = model.routes.map((route) => {
    const speed = speeds.get(formatRouteName(route));
    const isCooling = sale.value.isInCooldown?.(route) ?? false;
    return toListedEndpoint(listed, model, route, { speed, isCooling });
  });
  return c.json({ data: { id, name: id, created, description: "", architecture, endpoints } });
}

type Speeds = ReadonlyMap<string, RouteSpeed>;
type Cached = { speeds: Speeds; readMs: number };

const CACHE_MS = 15_000;
const makeCache = (): Cached => ({ speeds: new Map(), readMs: -Infinity });

async function regionSpeeds(c: Context<AppEnv>): Promise<Speeds> {
  const cached = Isolate.of(c.var.config).get(makeCache);
  const at = now(c.env);
  if (Math.abs(at - cached.readMs) < CACHE_MS) return cached.speeds;
  const read = await readRouteSpeeds(objectsOf(c.env).metrics());
  if (read !== null) Object.assign(cached, { speeds: read, readMs: at });
  return cached.speeds;
}
