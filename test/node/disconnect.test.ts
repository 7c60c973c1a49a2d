import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../scripts/admin-client.ts";
import { makeOrganization } from "./support/organization.ts";
import { openRaw } from "./support/raw-request.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";

const CREDITS = 1_000_000_000;
const AT_ONCE = 8;
const RESOLVED_WITHIN_MS = 30_000;

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: { DRAIN_S: "1" } });
});
afterAll(() => regions.stop());

type Organization = { readonly orgId: string; readonly keys: readonly string[] };

/** An organisation with enough keys that no key's minute is used up. */
async function organization(requests: number): Promise<Organization> {
  const admin = { url: regions.eu.adminUrl, token: ADMIN_TOKEN };
  const made = await makeOrganization(admin.url, admin.token, { credits: CREDITS });
  const { orgId, memberId } = made;
  const keys = [];
  for (let i = 0; i * 900 < requests; i++) {
    keys.push(
      await createKey(admin, { orgId, memberId, name: `k${i}`, scope: "regional", rpmLimit: 1000 }),
    );
  }
  return { orgId, keys };
}

async function operatorReads<T>(path: string): Promise<T> {
  const response = await fetch(`${regions.eu.adminUrl}${path}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

type Standing = { credits_micro: number; held_micro: number; open_holds: number };

/** Waits until no hold is open, and says how the organisation stands then. */
async function resolved(orgId: string): Promise<Standing> {
  const deadline = performance.now() + RESOLVED_WITHIN_MS;
  for (;;) {
    const standing = await operatorReads<Standing>(`/orgs/${orgId}`);
    if (standing.open_holds === 0) return standing;
    expect(performance.now(), "a hold is still open").toBeLessThan(deadline);
    await sleep(50);
  }
}

type Row = { kind: string; amount_micro: number };

async function ledger(orgId: string): Promise<Row[]> {
  const rows: Row[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: { rows: Row[]; next_after_seq: number | null } = await operatorReads(
      `/orgs/${orgId}/ledger?after_seq=${after}&limit=1000`,
    );
    rows.push(...page.rows);
    after = page.rows.length === 0 ? null : page.next_after_seq;
  }
  return rows;
}

/** About 2 KB on the wire, as a stream and as JSON. */
const streamed = {
  model: "sandbox/echo",
  stream: true,
  messages: [{ role: "user", content: "one two three" }],
};
const plain = { model: "sandbox/echo", messages: [{ role: "user", content: "word ".repeat(300) }] };

/** The end of a whole answer: JSON's last brace, or the last chunk of a stream. */
const WHOLE = /\}$|\r\n0\r\n\r\n$/;

/** Resets the connection after so many bytes of the answer, or after all of them. */
async function leave(key: string, body: object, bytes: number): Promise<number> {
  const connection = await openRaw({
    url: `${regions.eu.baseUrl}/chat/completions`,
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

async function balance(key: string): Promise<number> {
  const response = await fetch(`${regions.eu.baseUrl}/balance`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return ((await response.json()) as { credits_micro: number }).credits_micro;
}
describe("a client that resets its connection", () => {
  for (const [shape, body] of [
    ["a stream", streamed],
    ["a JSON answer", plain],
  ] as const) {
    it(`at every byte of ${shape}: every hold resolved, what was generated charged once`, async () => {
      const probe = await organization(1);
      const [probeKey = ""] = probe.keys;
      const before = await balance(probeKey);
      const points = await leave(probeKey, body, Number.MAX_SAFE_INTEGER);
      const cost = before - (await balance(probeKey));
      expect(points).toBeGreaterThan(1000);
      const { orgId, keys } = await organization(points);
      let next = 0;
      const work = async (): Promise<void> => {
        while (next <= points) {
          const at = next++;
          await leave(keys[Math.floor(at / 900)] ?? "", body, at);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      const standing = await resolved(orgId);
      const rows = await ledger(orgId);
      const paid = rows.filter((row) => row.kind === "usage");
      expect(standing.held_micro).toBe(0);
      expect(rows.reduce((sum, row) => sum + row.amount_micro, 0)).toBe(standing.credits_micro);
      expect(new Set(paid.map((row) => row.amount_micro))).toEqual(new Set([-cost]));
      expect(standing.credits_micro).toBe(CREDITS - paid.length * cost);
      // A reset may arrive before the request was admitted; from then on every request is paid.
      expect(paid.length).toBeGreaterThan(points * 0.9);
    }, 120_000);
  }
});
