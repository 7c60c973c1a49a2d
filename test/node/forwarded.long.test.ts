import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { linkSecret } from "../../scripts/region.ts";
import { signMessage } from "../fixtures/peer-message.ts";
import type { Account } from "./support/account.ts";
import {
  callsToEu,
  call,
  CHAT,
  hashOfAccount,
  makeKey,
  openRemoteAccount,
  statusOf,
} from "./support/peer-keys.ts";
import { LINK, startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions, TestRegion } from "./support/two-regions.ts";

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions({ bindings: { LOG_REQUESTS: "all" } });
});
afterAll(() => regions.stop());
afterEach(() => regions.toEu.set("pass"));

type Listed = { readonly id: string; readonly name: string; readonly revoked: boolean };

async function keysOf({ key }: Account): Promise<readonly Listed[]> {
  const response = await call(regions.eu, key, "/keys");
  assert.equal(response.status, 200);
  return ((await response.json()) as { keys: Listed[] }).keys;
}

/** Returns the route, status and failure of a region's log lines for a request ID. */
function loggedOutcomes(region: TestRegion, id: string): readonly unknown[] {
  return region.log
    .filter(({ message }) => message.includes(`"request_id":"${id}"`))
    .map(({ message }) => JSON.parse(message) as Record<string, unknown>)
    .map(({ route, status, failure }) => [route, status, failure]);
}

describe("a write that one region forwards to another", () => {
  it.each([
    ["duplicate", 201],
    ["resend", 503],
    ["lose-reply", 503],
    ["reset-after", 503],
  ] as const)(
    "creates one key if the message between the regions is %s: %i",
    async (fault, status) => {
      const account = await openRemoteAccount(regions);
      expect(await statusOf(regions.us, account.key)).toBe(200);
      const before = (await keysOf(account)).length;
      await regions.toEu.set((operation) => (operation === "forward" ? fault : "pass"));
      const of = { body: { name: fault, scope: "global" }, headers: { "idempotency-key": fault } };
      const answer = await call(regions.us, account.key, "/keys", of);
      expect(answer.status).toBe(status);
      const body: unknown = await answer.json();
      const created = (await keysOf(account)).filter(({ name }) => name === fault);
      expect([created.length, (await keysOf(account)).length]).toEqual([1, before + 1]);
      expect(body).toMatchObject(
        status === 201 ? { id: created[0]?.id } : { error: { code: "home_region_unreachable" } },
      );
      await regions.toEu.set("pass");
      const again = await call(regions.us, account.key, "/keys", of);
      expect([again.status, await again.json()]).toMatchObject([
        409,
        { error: { code: "idempotency_replay", key_id: created[0]?.id } },
      ]);
      expect(await keysOf(account)).toHaveLength(before + 1);
    },
  );

  it("returns the same result if a DELETE arrives twice", async () => {
    const account = await openRemoteAccount(regions);
    const { id } = await makeKey(regions, account.key);
    await regions.toEu.set("duplicate");
    const gone = await call(regions.us, account.key, `/keys/${id}`, { method: "DELETE" });
    expect([gone.status, await gone.json()]).toMatchObject([200, { id, revoked: true }]);
  });

  it("takes effect once and only in the home region, for 20 keys created and revoked concurrently through both regions", async () => {
    const account = await openRemoteAccount(regions);
    const through = (i: number) => (i % 2 === 0 ? regions.eu : regions.us);
    const created = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const of = { body: { name: `both ${i}`, scope: "global" } };
        const response = await call(through(i), account.key, "/keys", of);
        expect(response.status).toBe(201);
        return (await response.json()) as { id: string; key: string };
      }),
    );
    const gone = await Promise.all(
      created.flatMap(({ id }) =>
        [0, 1].map((i) => statusOf(through(i), account.key, `/keys/${id}`, { method: "DELETE" })),
      ),
    );
    expect(new Set(gone)).toEqual(new Set([200]));
    const listed = (await keysOf(account)).filter(({ name }) => name.startsWith("both"));
    expect(listed.map(({ revoked }) => revoked)).toEqual(Array.from({ length: 20 }, () => true));
    expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(created.map(({ id }) => id)));
    for (const { key } of created) {
      expect([await statusOf(regions.eu, key), await statusOf(regions.us, key)]).toEqual([
        401, 401,
      ]);
    }
    const book = await regions.us.miniflare.getD1Database("DB", "turnpike-us");
    const { results } = await book
      .prepare("SELECT id FROM keys WHERE org_id = ?")
      .bind(account.orgId)
      .all();
    expect(results).toEqual([]);
  });
});

describe("a read with a global key in another region", () => {
  it("includes a charge that the called region hasn't yet reported to the home region", async () => {
    const account = await openRemoteAccount(regions);
    await regions.toEu.set((operation) => (operation === "outcomes" ? "5xx" : "pass"));
    const answer = await call(regions.us, account.key, "/chat/completions", CHAT);
    const cost = Number(answer.headers.get("x-cost-micro"));
    expect([answer.status, cost > 0]).toEqual([200, true]);
    const balance = async (): Promise<unknown> =>
      (await call(regions.us, account.key, "/balance")).json();
    // the home region doesn't know yet
    expect(await balance()).toMatchObject({ credits_micro: 1_000_000 });
    await regions.toEu.set("pass");
    expect(await balance()).toMatchObject({ credits_micro: 1_000_000 - cost });
    expect(await account.balance()).toBe(1_000_000 - cost);
  });
});

describe("a forwarded request", () => {
  it.each([
    ["/users/nobody", 404, "/v1/users/:external_id{.+}", "not_found"],
    ["/balance", 200, "/v1/balance", null],
  ])(
    "appears in both regions' logs with the client's request ID: %s",
    async (path, ...expected) => {
      const [status, route, failure] = expected;
      const account = await openRemoteAccount(regions);
      const answer = await call(regions.us, account.key, path, {
        headers: { "x-request-id": "req_theirs" },
      });
      expect(answer.status).toBe(status);
      const id = answer.headers.get("x-request-id") ?? "";
      expect(id).toMatch(/^req_[0-9A-Za-z]{24}$/);
      const answered = status === 200 ? null : `home_${status}`;
      await expect
        .poll(() => loggedOutcomes(regions.us, id))
        .toEqual([[expect.any(String), status, answered]]);
      await expect
        .poll(() => loggedOutcomes(regions.eu, id))
        .toEqual([
          [route, status, failure],
          ["/internal/v1/forward", 200, null],
        ]);
      expect(loggedOutcomes(regions.eu, "req_theirs")).toEqual([]);
    },
  );
});

describe("a call that regions must not forward", () => {
  const CREDITS = { amount_micro: 5, reference: "never" };

  it("doesn't reach the home region if a key calls an operator endpoint", async () => {
    const { key, orgId } = await openRemoteAccount(regions);
    expect(await statusOf(regions.us, key)).toBe(200);
    const seen = await callsToEu(regions, async () => {
      const answer = await fetch(`${regions.us.adminUrl}/orgs/${orgId}/credits`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(CREDITS),
      });
      expect(answer.status).toBe(401);
    });
    expect(seen).toEqual({});
  });

  it.each([
    ["/admin/v1/orgs/ORG/credits"],
    ["/v1/../admin/v1/orgs/ORG/credits"],
    ["/v1/%2e%2e/admin/v1/orgs/ORG/credits"],
    ["//admin/v1/orgs/ORG/credits"],
    ["/%61dmin/v1/orgs/ORG/credits"],
    ["/v1/chat/completions"],
    ["/v1//chat/completion%73/"],
    ["/v1/embeddings"],
    ["/v1/models"],
    ["/v1/models/sandbox/echo"],
    ["/v1/messages/count_tokens"],
    ["/internal/v1/lookup"],
    ["/healthz"],
  ])("returns an error for %s, even if another region signs the call", async (path) => {
    const account = await openRemoteAccount(regions);
    const isRead = path.startsWith("/v1/models") || path === "/healthz";
    const text = path.includes("completion") ? JSON.stringify(CHAT.body) : JSON.stringify(CREDITS);
    const message = {
      method: isRead ? "GET" : "POST",
      path: path.replace("ORG", account.orgId),
      query: "",
      headers: { "content-type": "application/json" },
      body: isRead ? null : btoa(text),
      caller_key_hash: await hashOfAccount(regions, account),
      v: 1,
    };
    const { method, headers, body, url } = await signMessage({
      url: `${regions.eu.url}internal/v1/forward`,
      sender: "us",
      secret: linkSecret(LINK, "us", "eu"),
      signedAt: Date.now(),
      body: JSON.stringify(message),
    });
    const answer = await fetch(url, { method, headers, body });
    expect(await answer.json()).toMatchObject({ ok: false });
    expect(await account.balance()).toBe(1_000_000);
  });
});
