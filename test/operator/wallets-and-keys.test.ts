import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import { findKeyByHash, listKeys } from "../../src/accounts/keys/keys.store.ts";
import { verifyKey } from "../../src/accounts/keys/api-key.ts";
import type { EndpointResult } from "../../src/shared/http/endpoint.ts";
import { outboxNames } from "../../src/regions/outbox-schedule.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { call, makeOrganization, valueOf, wallets } from "./operator-fixture.ts";

beforeEach(() => {
  wallets.clear();
});

it("POST /orgs/{id}/credits requires an integer amount, a reference and an existing organization", async () => {
  const { organization } = await makeOrganization();
  const params = { id: organization.id };
  const post = (body: unknown, id = organization.id): Promise<EndpointResult> =>
    call("POST /orgs/:id/credits", { params: { id }, body });
  expect(valueOf(await post({ amount_micro: 500, reference: "a" }))).toEqual({
    credits_micro: 500,
  });
  expect(valueOf(await post({ amount_micro: 500, reference: "a" }))).toEqual({
    credits_micro: 500,
  });
  expect(valueOf(await post({ amount_micro: -200, reference: "b" }))).toEqual({
    credits_micro: 300,
  });
  for (const [param, body] of [
    ["amount_micro", { amount_micro: 1.5, reference: "c" }],
    ["amount_micro", { amount_micro: "5", reference: "c" }],
    ["amount_micro", { amount_micro: 2 ** 53, reference: "c" }],
    ["amount_micro", { amount_micro: 0, reference: "c" }],
    ["reference", { amount_micro: 5, reference: "" }],
    ["reference", { amount_micro: 5, reference: "x".repeat(201) }],
    ["reference", { amount_micro: 5 }],
  ] as const) {
    expect(await post(body)).toMatchObject({ failure: { kind: "invalid_request", param } });
  }
  const unknown = crypto.randomUUID();
  expect(await post({ amount_micro: 5, reference: "d" }, unknown)).toMatchObject({
    failure: { kind: "not_found" },
  });
  expect(wallets.has(unknown)).toBe(false);
  expect(valueOf(await call("GET /orgs/:id/ledger", { params, query: "after_seq=1" }))).toEqual({
    rows: [
      {
        seq: 2,
        kind: "credit",
        amount_micro: -200,
        balance_micro: 300,
        created_at: "1970-01-01T00:00:00.000Z",
        reference: "b",
        generation_id: null,
      },
    ],
    next_after_seq: 2,
  });
  expect(valueOf(await call("POST /orgs/:id/reconcile", { params }))).toEqual({
    credits_micro: 300,
    held_micro: 0,
    open_holds: 0,
    differences: [],
    rows_read: 0,
  });
});

it("POST /orgs/{id}/members/{member_id}/keys shows the new key once, and only for a member of the organization", async () => {
  const [one, two] = [await makeOrganization(), await makeOrganization()];
  const post = (member_id: string, body: unknown): Promise<EndpointResult> =>
    call("POST /orgs/:id/members/:member_id/keys", {
      params: { id: one.organization.id, member_id },
      body,
    });
  const key = valueOf(await post(one.member.id, { name: "second" }));
  expect(key).toMatchObject({ name: "second", rpm_limit: 60, scope: "regional", region: "eu" });
  const verified = await verifyKey(String(key["key"]), keySecrets());
  const stored = await findKeyByHash(env.DB, verified?.hash ?? "");
  expect(stored).toMatchObject({ keyId: key["id"], orgId: one.organization.id });
  const listed = JSON.stringify(
    await listKeys(env.DB, { orgId: one.organization.id, memberId: null }),
  );
  expect(listed).not.toContain(String(key["key"]).slice(-20));
  expect(await post(two.member.id, { name: "x" })).toMatchObject({
    failure: { kind: "not_found" },
  });
  expect(await post(one.member.id, { name: "x", rpm_limit: 1001 })).toMatchObject({
    failure: { param: "rpm_limit" },
  });
  expect(await post(one.member.id, {})).toMatchObject({ failure: { param: "name" } });
});

it("GET /health includes the database's state and the messages in each outbox", async () => {
  const health = valueOf(await call("GET /health"));
  const aliases = { smart: "sandbox/echo" };
  expect(health).toMatchObject({ region: "eu", version: "test", aliases, book: true });
  const until = "1970-01-01T00:00:00.000Z";
  expect(health).toMatchObject({ breakers: [{ route: "up:m", state: "open", until }] });
  // Other tests' revocations for the peer can be pending here.
  const depths = await Promise.all(
    outboxNames(["us"]).map(async (name) => {
      const { waiting, dead, parked } = await env.REGION_OUTBOX.getByName(name).depth();
      return { name, waiting, dead, parked };
    }),
  );
  expect(health["outboxes"]).toMatchObject(depths);
  const empty = { name: "own/0", waiting: 0, dead: 0, parked: 0, oldest_ms: null };
  expect(health["outboxes"]).toContainEqual(empty);
});
