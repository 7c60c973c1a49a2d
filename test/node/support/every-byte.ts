import { expect } from "vitest";
import { createKey } from "../../../scripts/admin-client.ts";
import { ledger, resolved } from "./money.ts";
import { makeOrganization } from "./organization.ts";
import { openRaw } from "./raw-request.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";
import type { TestRegion } from "./two-regions.ts";

const CREDITS = 1_000_000_000;
const KEY_REQUESTS_MAX = 900;

/** The number of concurrent clients, the step in bytes, and the path below /v1. */
type Cuts = { readonly atOnce: number; readonly every: number; readonly path?: string };

/** The end of a complete response: JSON's last brace or the last chunk of a stream. */
const WHOLE = /\}$|\r\n0\r\n\r\n$/;

/**
 * Resets one client after every `every`th byte of the response. Checks that every hold was
 * resolved, and each client charged the cost of the whole response once. Returns the number of
 * resets.
 */
export async function disconnectAtEveryByte(
  region: TestRegion,
  body: object,
  { atOnce, every, path = "/chat/completions" }: Cuts,
): Promise<number> {
  const probe = await organization(region, 1);
  const whole = await leave(region, probe.keys[0] ?? "", { path, body }, Number.MAX_SAFE_INTEGER);
  const cost = CREDITS - (await resolved(region, probe.orgId)).credits_micro;
  expect(cost).toBeGreaterThan(0);
  const bytes = Array.from({ length: Math.ceil((whole + 1) / every) }, (_, i) => i * every);
  const points = bytes.length;
  const { orgId, keys } = await organization(region, points);
  const remaining = bytes.entries();
  const work = async (): Promise<void> => {
    for (const [i, at] of remaining) {
      await leave(region, keys[Math.floor(i / KEY_REQUESTS_MAX)] ?? "", { path, body }, at);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const balance = await resolved(region, orgId);
  const rows = await ledger(region, orgId);
  const paid = rows.filter((row) => row.kind === "usage");
  expect(balance.held_micro).toBe(0);
  expect(rows.reduce((sum, row) => sum + row.amount_micro, 0)).toBe(balance.credits_micro);
  expect(new Set(paid.map((row) => row.amount_micro))).toEqual(new Set([-cost]));
  expect(balance.credits_micro).toBe(CREDITS - paid.length * cost);
  // A reset can arrive before admission. From then on, every request is paid.
  expect(paid.length).toBeGreaterThan(points * 0.9);
  return points;
}

/** Creates an organization with enough keys for their limits per minute. */
async function organization(
  region: TestRegion,
  requests: number,
): Promise<{ readonly orgId: string; readonly keys: readonly string[] }> {
  const admin = { url: region.adminUrl, token: ADMIN_TOKEN };
  const created = await makeOrganization(admin.url, admin.token, { credits: CREDITS });
  const { orgId, memberId } = created;
  const keys: string[] = [];
  for (let i = 0; i * KEY_REQUESTS_MAX < requests; i++) {
    const terms = { orgId, memberId, name: `k${i}`, scope: "regional", rpmLimit: 1000 } as const;
    keys.push(await createKey(admin, terms));
  }
  return { orgId, keys };
}

/**
 * Resets the connection after this number of bytes, or at the end. Returns the number of received
 * bytes.
 */
async function leave(
  region: TestRegion,
  key: string,
  { path, body }: { readonly path: string; readonly body: object },
  bytes: number,
): Promise<number> {
  const connection = await openRaw({
    url: `${region.baseUrl}${path}`,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  await connection.readUntil(
    (received) => received.length >= bytes || WHOLE.test(received.subarray(-16).toString()),
  );
  const { length } = connection.received();
  await connection.reset();
  return length;
}
