import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";

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

/** Returns the path of one end user with an encoded ID. */
function userPath(externalId: string): string {
  return `/v1/users/${encodeURIComponent(externalId)}`;
}

/** Sends a request to an end user's path. */
export function sendUser(
  externalId: string,
  key: string,
  sending: Omit<Sending, "key"> = {},
): Promise<Response> {
  return send(userPath(externalId), { ...sending, key });
}

/** Creates or changes an end user, and checks the response. */
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

/** Returns all rows of a query on the organization's wallet. */
export function walletRows(orgId: string, query: string): Promise<Record<string, unknown>[]> {
  return runInDurableObject(env.WALLET.getByName(orgId), (_wallet: Wallet, state) =>
    state.storage.sql.exec(query).toArray(),
  );
}

/** Returns the wallet's stored limits of all end users in micro-credits. */
export function storedLimits(orgId: string): Promise<Record<string, unknown>[]> {
  return walletRows(
    orgId,
    "SELECT external_id, monthly_quota, daily_quota, alert_threshold FROM end_users ORDER BY number",
  );
}
