import type { Context } from "hono";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { callObject } from "../../shared/reach-object.ts";
import { QUERY_TIMEOUT_MS } from "./run-board.ts";
import { parseWatchBody } from "./run-watch.ts";

export async function watchPeer(c: Context<AppEnv>): Promise<Response> {
  const query = parseWatchBody(c.var.peerBody);
  if (query === null) return fail(c, { kind: "internal" });
  const stops = await callObject(() => objectsOf(c.env).wallet(query.orgId).watch(query.runs), {
    budgetMs: QUERY_TIMEOUT_MS,
  });
  return stops.ok ? c.json({ stops: stops.value }) : fail(c, stops.failure);
}
