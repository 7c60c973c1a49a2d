import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";

/** The end user of the interface. */
export type EndUser = {
  readonly id: string;
  readonly external_id: string;
  readonly monthly_quota_dollars: number | null;
  readonly daily_quota_dollars: number | null;
  readonly alert_threshold: number;
  readonly monthly_spend_dollars: number;
  readonly daily_spend_dollars: number;
  readonly created_at: string;
};

/** The path of one end user, its id encoded as any client encodes it. */
function userPath(externalId: string): string {
  return `/v1/users/${encodeURIComponent(externalId)}`;
}

/** Sends to an end user's path. */
export function sendUser(
  externalId: string,
  key: string,
  sending: Omit<Sending, "key"> = {},
): Promise<Response> {
  return send(userPath(externalId), { ...sending, key });
}

/** Creates or changes an end user, and checks that this is what happened. */
export async function putUser(
  key: string,
  fields: Record<string, unknown>,
  status = 201,
): Promise<EndUser> {
  const response = await send("/v1/users", { key, body: fields });
  expect(response.status).toBe(status);
  return response.json<EndUser>();
}

export async function readUser(key: string, externalId: string): Promise<EndUser> {
  const response = await sendUser(externalId, key);
  expect(response.status).toBe(200);
  return response.json<EndUser>();
}

/** All rows of a query against the organization's own wallet. */
export function walletRows(orgId: string, query: string): Promise<Record<string, unknown>[]> {
  return runInDurableObject(env.WALLET.getByName(orgId), (_wallet: Wallet, state) =>
    state.storage.sql.exec(query).toArray(),
  );
}

/** What the wallet stores of all end users' limits, in micros. */
export function storedLimits(orgId: string): Promise<Record<string, unknown>[]> {
  return walletRows(
    orgId,
    "SELECT external_id, monthly_quota, daily_quota, alert_threshold FROM end_users ORDER BY number",
  );
}
