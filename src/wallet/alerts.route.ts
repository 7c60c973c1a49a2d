import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { pageQuery, parseQuery } from "../http/parse-body.ts";
import { alertsView } from "./alerts-view.ts";
import { askOwnWallet } from "./own-wallet.route.ts";

/** GET /v1/alerts?limit&offset: crossings of quotas and of the balance's threshold, newest first. */
export async function alertsRoute(c: Context<AppEnv>): Promise<Response> {
  const page = parseQuery(pageQuery, c.req.url);
  if (!page.ok) return fail(c, page.failure);
  const { limit, offset } = page.value;
  const answer = await askOwnWallet(c, (wallet) => wallet.alerts(limit, offset));
  return answer.ok ? c.json(alertsView(answer.value, page.value)) : fail(c, answer.failure);
}
