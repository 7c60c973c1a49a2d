import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { pageQuery, parseQuery } from "../http/parse-body.ts";
import { readFields } from "../http/read-fields.ts";
import { timestamp } from "../lib/clock.ts";
import { dollarsOrNull, fraction, shownDollars } from "./dollars.ts";
import { askOwnWallet } from "./own-wallet.route.ts";
import type { EndUserChange, EndUserRecord } from "./wallet-contract.ts";

const limits = {
  monthly_quota_dollars: z.optional(dollarsOrNull),
  daily_quota_dollars: z.optional(dollarsOrNull),
  alert_threshold: z.optional(fraction),
};
const changeBody = z.object(limits);
const putBody = z.object({ external_id: z.string(), ...limits });

/** POST /v1/users: 201 with a new end user, what is left out by default; 200 with one that was there, changed. */
export async function putEndUserRoute(c: Context<AppEnv>): Promise<Response> {
  const fields = await readFields(c, putBody);
  if (!fields.ok) return fail(c, fields.failure);
  const { external_id: externalId, ...given } = fields.value;
  const answer = await askOwnWallet(c, (wallet) =>
    wallet.putEndUser(externalId, changeOf(given), c.var.admitted.caller.keyHash),
  );
  if (!answer.ok) return fail(c, answer.failure);
  const { created, endUser } = answer.value;
  return c.json(endUserView(endUser), created ? 201 : 200);
}

/** GET /v1/users?limit&offset: end users with their spend of now, in the order of creation. */
export async function listEndUsersRoute(c: Context<AppEnv>): Promise<Response> {
  const page = parseQuery(pageQuery, c.req.url);
  if (!page.ok) return fail(c, page.failure);
  const { limit, offset } = page.value;
  const answer = await askOwnWallet(c, (wallet) => wallet.listEndUsers(limit, offset));
  if (!answer.ok) return fail(c, answer.failure);
  const { endUsers, total } = answer.value;
  return c.json({ users: endUsers.map(endUserView), total, limit, offset });
}

/** GET /v1/users/{external_id}: one end user with its spend of now, or 404. */
export async function readEndUserRoute(c: Context<AppEnv>): Promise<Response> {
  const answer = await askOwnWallet(c, (wallet) => wallet.readEndUser(externalIdOf(c)));
  return answer.ok ? c.json(endUserView(answer.value)) : fail(c, answer.failure);
}

/** PATCH /v1/users/{external_id}: changes what is given, from the next request on; the record, or 404. */
export async function patchEndUserRoute(c: Context<AppEnv>): Promise<Response> {
  const fields = await readFields(c, changeBody);
  if (!fields.ok) return fail(c, fields.failure);
  const change = changeOf(fields.value);
  const answer = await askOwnWallet(c, (wallet) =>
    wallet.patchEndUser(externalIdOf(c), change, c.var.admitted.caller.keyHash),
  );
  return answer.ok ? c.json(endUserView(answer.value)) : fail(c, answer.failure);
}

/** DELETE /v1/users/{external_id}: forgets an end user, or 404. Its requests in flight are charged all the same. */
export async function deleteEndUserRoute(c: Context<AppEnv>): Promise<Response> {
  const externalId = externalIdOf(c);
  let attempts = 0;
  const answer = await askOwnWallet(c, (wallet) => {
    attempts++;
    return wallet.deleteEndUser(externalId, c.var.admitted.caller.keyHash);
  });
  // An attempt whose answer was lost may have deleted it: then the next one finds nothing.
  const isGone = attempts > 1 && !answer.ok && answer.failure.kind === "not_found";
  if (!answer.ok && !isGone) return fail(c, answer.failure);
  return c.json({ external_id: externalId, deleted: true });
}

/** The path's external_id, decoded once, slashes included. */
function externalIdOf(c: Context<AppEnv>): string {
  return c.req.param("external_id") ?? "";
}

function changeOf(given: z.infer<typeof changeBody>): EndUserChange {
  return {
    monthlyQuotaMicro: given.monthly_quota_dollars,
    dailyQuotaMicro: given.daily_quota_dollars,
    alertThreshold: given.alert_threshold,
  };
}

/** The end user of the interface, 2.6. */
function endUserView(endUser: EndUserRecord): Readonly<Record<string, unknown>> {
  return {
    id: endUser.id,
    external_id: endUser.externalId,
    monthly_quota_dollars: shownDollars(endUser.monthlyQuotaMicro),
    daily_quota_dollars: shownDollars(endUser.dailyQuotaMicro),
    alert_threshold: endUser.alertThreshold,
    monthly_spend_dollars: shownDollars(endUser.monthlySpendMicro),
    daily_spend_dollars: shownDollars(endUser.dailySpendMicro),
    created_at: timestamp(endUser.createdAt),
  };
}
