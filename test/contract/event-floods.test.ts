import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { pay, rowsOf, setClock } from "../wallet/wallet-fixture.ts";
import { chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

const HOUR = 3_600_000;

let account: Account;
afterEach(() => setClock(null));
beforeEach(async () => {
  account = await openAccount();
});

type Event = { readonly type: string; readonly data: Readonly<Record<string, unknown>> };
async function ofType(type: string): Promise<readonly Event[]> {
  const response = await send(`/v1/events?limit=100&type=${type}`, { key: account.key });
  expect(response.status).toBe(200);
  return (await response.json<{ events: readonly Event[] }>()).events;
}

/** Adds events of changes in the database, made by a key. */
async function addEvents(type: string, count: number, actor = account.keyId): Promise<void> {
  await env.DB.prepare(
    `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
     SELECT 'evt_' || lower(hex(randomblob(12))), ?1, ?2, 'key', ?3, 's', '{}', ?4 + value FROM json_each(?5)`,
  )
    .bind(
      account.orgId,
      type,
      actor,
      Date.now(),
      JSON.stringify(Array.from({ length: count }, (_, i) => i)),
    )
    .run();
  await wallet().takeEvents();
}
const wallet = () => env.WALLET.getByName(account.orgId);
const countOf = async (type: string, actor = account.keyId): Promise<number> => {
  const sql = `SELECT count(*) AS n FROM events WHERE type = '${type}' AND actor_id = '${actor}'`;
  const [row] = await rowsOf(wallet(), sql);
  return Number(row?.["n"]);
};

it("the event log summarizes events beyond 100 per hour of the same key and type, but no other events", async () => {
  await addEvents("organization.changed", 250);
  await addEvents("member.changed", 5);
  await addEvents("organization.changed", 5, "key_other");
  await addEvents("key.revoked", 250);
  expect(await countOf("organization.changed")).toBe(100);
  expect(await countOf("member.changed")).toBe(5);
  expect(await countOf("organization.changed", "key_other")).toBe(5);
  expect(await countOf("key.revoked")).toBe(250);
  expect(await ofType("organization.events_left_out")).toEqual([]);
  setClock(Date.now() + 2 * HOUR);
  const summed = await ofType("organization.events_left_out");
  expect(summed).toMatchObject([
    {
      actor: { kind: "system", id: null },
      subject: account.orgId,
      data: {
        actor: { kind: "key", id: account.keyId },
        type: "organization.changed",
        left_out: 150,
      },
    },
  ]);
  expect(summed).toHaveLength(1);
  await addEvents("organization.changed", 5);
  expect(await countOf("organization.changed")).toBe(105);
  expect(await ofType("organization.events_left_out")).toHaveLength(1);
});

it("the event log deletes the oldest events of types with too many events, but no events of other types", async () => {
  await addEvents("end_user.alert", 3);
  // Simulates 99,999 further events in between.
  await rowsOf(
    wallet(),
    "UPDATE events SET place = place - 99999 WHERE room = 'end_user' AND place = 1",
  );
  const others = async () =>
    rowsOf(wallet(), "SELECT id FROM events WHERE room <> 'end_user' ORDER BY seq");
  const before = await others();
  expect(before.length).toBeGreaterThan(2);
  await addEvents("end_user.alert", 2);
  expect(await others()).toEqual(before);
  const left = await rowsOf(
    wallet(),
    "SELECT place FROM events WHERE room = 'end_user' ORDER BY place",
  );
  expect(left).toEqual([2, 3, 4, 5].map((place) => ({ place })));
});

it("the event log records rejected requests of known end users, but not of unknown end users", async () => {
  const settings = { default_user_daily_quota_dollars: 0 };
  const path = `/v1/orgs/${account.orgId}/settings`;
  expect((await send(path, { method: "PATCH", key: account.key, body: settings })).status).toBe(
    200,
  );
  for (let i = 0; i < 5; i++) {
    expect((await chat(account.key, { user: `made up ${i}` })).status).toBe(429);
  }
  expect(await ofType("end_user.quota_reached")).toEqual([]);
  const user = { external_id: "there", daily_quota_dollars: 0.0001 };
  expect((await send("/v1/users", { key: account.key, body: user })).status).toBe(201);
  await pay(wallet(), 90, "there");
  expect((await chat(account.key, { user: "there" })).status).toBe(429);
  expect(await ofType("end_user.quota_reached")).toMatchObject([{ subject: "there" }]);
});
