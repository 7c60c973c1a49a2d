import { admin, send } from "./client.ts";
import type { Account } from "./client.ts";

/**
 * Returns everything about an organization that its owner and operator can read, except last uses
 * of keys and the health of webhooks.
 */
export async function readOrganizationData({ orgId, key }: Omit<Account, "memberId" | "keyId">) {
  const organization = `/v1/orgs/${orgId}`;
  const lists = ["keys", "users?limit=100", "balance", "webhooks", "sessions", "pauses", "events"];
  const paths = [organization, `${organization}/settings`, ...lists.map((path) => `/v1/${path}`)];
  const memberResponses = await Promise.all(paths.map((path) => send(path, { key })));
  const operators = ["", "/members", "/ledger?limit=1000"].map((path) => `/orgs/${orgId}${path}`);
  const operatorResponses = await Promise.all(operators.map((path) => admin("GET", path)));
  return Promise.all(
    [...memberResponses, ...operatorResponses].map(async (response) => {
      const text = await response.text();
      return [response.status, text.replaceAll(/"(?:last_used_at|last_success_at)":[^,}]+/g, "")];
    }),
  );
}
