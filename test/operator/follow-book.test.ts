import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import { success } from "../../src/shared/failure.ts";
import { syncWithDatabase } from "../../src/shared/sync-with-database.ts";
import type { EndpointResult } from "../../src/shared/http/endpoint.ts";
import { WatchedBook } from "../keys/key-fixture.ts";
import { call, makeOrganization, walletOf, wallets } from "./operator-fixture.ts";

beforeEach(() => {
  wallets.clear();
});

const patch = (id: string, body: unknown): Promise<EndpointResult> =>
  call("PATCH /orgs/:id", { params: { id }, body });
const booked = (id: string): Promise<Record<string, unknown> | null> =>
  env.DB.prepare("SELECT status, rpm_limit, name FROM organizations WHERE id = ?").bind(id).first();

it("an object has the database's values after two concurrent changes that reach it in the opposite order", async () => {
  const { organization } = await makeOrganization();
  const wallet = walletOf(organization.id);
  const configure = wallet.configure.bind(wallet);
  const arrived = Promise.withResolvers<null>();
  const late = Promise.withResolvers<null>();
  wallet.configure = async (change) => {
    wallet.configure = configure; // only the first change is delayed
    arrived.resolve(null);
    await late.promise;
    return configure(change);
  };
  const first = patch(organization.id, { status: "suspended", rpm_limit: 5 });
  await arrived.promise;
  expect(await patch(organization.id, { status: "active", rpm_limit: null })).toMatchObject({
    value: { status: "active", rpm_limit: null },
  });
  late.resolve(null);
  expect(await first).toMatchObject({ value: { status: "active", rpm_limit: null } });
  expect(await booked(organization.id)).toMatchObject({ status: "active", rpm_limit: null });
  expect(wallet.configuration).toMatchObject({ suspended: false, rpmLimit: null, priceList: null });
});

it("an object is updated repeatedly until the database has nothing new", async () => {
  const book = [1, 2, 3, 3, 3];
  const told: number[] = [];
  const followed = await syncWithDatabase(0, {
    send: async (row) => success(told.push(row)),
    reread: async () => book.shift() ?? null,
    isSame: (one, other) => one === other,
  });
  expect([followed, told]).toEqual([{ ok: true, value: 3 }, [0, 1, 2, 3]]);
});

it("a change returns 503 instead of looping if the database keeps changing", async () => {
  let row = 0;
  const followed = await syncWithDatabase(row, {
    send: async () => success(null),
    reread: async () => ++row,
    isSame: (one, other) => one === other,
  });
  expect(followed).toEqual({ ok: false, failure: { kind: "overloaded" } });
});

it("a change returns 503 if the wallet can't be notified after the write, and completes on a retry", async () => {
  const { organization } = await makeOrganization();
  const wallet = walletOf(organization.id);
  wallet.down = true;
  const body = { status: "suspended" };
  expect(await patch(organization.id, body)).toMatchObject({
    failure: { kind: "storage_unavailable" },
  });
  expect(await booked(organization.id)).toMatchObject({ status: "suspended" });
  expect(wallet.configuration.suspended).toBe(false);
  wallet.down = false;
  expect(await patch(organization.id, {})).toMatchObject({ value: { status: "suspended" } });
  expect(wallet.configuration.suspended).toBe(true);
});

it("a change notifies no object while the database is down", async () => {
  const { organization, key } = await makeOrganization();
  const params = { id: organization.id, key_id: key.id };
  const book = new WatchedBook();
  book.broken = true;
  const answers = [
    await call("PATCH /orgs/:id/keys/:key_id", { params, body: { rpm_limit: 5 } }),
    await call("DELETE /orgs/:id/keys/:key_id", { params }),
    await call("GET /orgs/:id/keys", { params }),
  ];
  book.restore();
  for (const answer of answers) {
    expect(answer).toMatchObject({ failure: { kind: "storage_unavailable" } });
  }
  expect(await call("GET /orgs/:id/keys/:key_id", { params })).toMatchObject({
    value: { rpm_limit: 60, revoked: false },
  });
});
