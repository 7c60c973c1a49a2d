import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { now } from "../lib/clock.ts";
import { askOwnWallet } from "./own-wallet.route.ts";
import { usageQuery, usageView } from "./usage-report.ts";

/** GET /v1/usage?from&to&group_by&limit&after: what the organisation used and paid, always current. */
export async function usageRoute(c: Context<AppEnv>): Promise<Response> {
  const asked = usageQuery(c.req.url, now(c.env));
  if (!asked.ok) return fail(c, asked.failure);
  const { from, to, groupBy, page } = asked.value;
  const answer = await askOwnWallet(c, (wallet) => wallet.usage(from, to, groupBy, page));
  return answer.ok ? c.json(usageView(asked.value, answer.value)) : fail(c, answer.failure);
}
