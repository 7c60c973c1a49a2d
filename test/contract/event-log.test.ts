import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import { sweepHourly } from "../../src/operator/sweep.store.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { abort } from "../wallet/fault-fixture.ts";
import { admin, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

type Event = {
  readonly id: string;
  readonly type: string;
  readonly actor: unknown;
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
};
const OPERATOR = { kind: "operator", id: "admin" };

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

async function log(): Promise<readonly Event[]> {
  const response = await send("/v1/events?limit=100", { key: account.key });
  expect(response.status).toBe(200);
  return (await response.json<{ events: readonly Event[] }>()).events;
}
const loggedEvents = async (type: string): Promise<readonly Omit<Event, "id">[]> =>
  (await log())
    .filter((event) => event.type === type)
    .map(({ type: kind, actor, subject, data }) => ({ type: kind, actor, subject, data }));
async function operator(method: string, path: string, body?: object): Promise<unknown> {
  const response = await admin(method, `/orgs/${account.orgId}${path}`, body);
  expect(response.ok).toBe(true);
  return response.json();
}

describe("the event log", () => {
  it("records a new organization, its owner and its first key", async () => {
    expect((await log()).map(({ type }) => type).toSorted()).toEqual([
      "balance.credited",
      "key.created",
      "member.created",
      "organization.created",
    ]);
    expect(await loggedEvents("organization.created")).toMatchObject([
      { actor: OPERATOR, subject: account.orgId },
    ]);
    expect(await loggedEvents("key.created")).toMatchObject([
      { actor: OPERATOR, subject: account.keyId },
    ]);
  });

  it("records a key's creation and changes, without unchanged values", async () => {
    const actor = { kind: "key", id: account.keyId };
    const body = { name: "one", budget_dollars: 5 };
    const response = await send("/v1/keys", { key: account.key, body });
    const { id } = await response.json<{ id: string }>();
    const patch = (fields: object): Promise<Response> =>
      send(`/v1/keys/${id}`, { method: "PATCH", key: account.key, body: fields });
    for (const fields of [{ name: "two" }, { name: "two" }, { budget_dollars: 4 }]) {
      expect((await patch(fields)).status).toBe(200);
    }
    expect((await patch({ rpm_limit: -1 })).status).toBe(400);
    expect((await loggedEvents("key.created"))[0]).toMatchObject({
      actor,
      subject: id,
      data: { name: "one", budget_micro: 5_000_000, member_id: account.memberId },
    });
    expect(await loggedEvents("key.changed")).toMatchObject([
      { actor, subject: id, data: { changes: { budget_micro: { from: 5e6, to: 4e6 } } } },
      { actor, subject: id, data: { changes: { name: { from: "one", to: "two" } } } },
    ]);
  });

  it("records only one event for POST /v1/keys and a retry with the same Idempotency-Key", async () => {
    const headers = { "idempotency-key": "again" };
    const body = { name: "once" };
    expect((await send("/v1/keys", { key: account.key, body, headers })).status).toBe(201);
    expect((await send("/v1/keys", { key: account.key, body, headers })).status).toBe(409);
    expect(await loggedEvents("key.created")).toHaveLength(2);
  });

  it("records when a member is added, changed or removed, and when the member's keys are revoked", async () => {
    const email = "a@example.com";
    const { id } = (await operator("POST", "/members", { email, role: "member" })) as {
      id: string;
    };
    const key = (await operator("POST", `/members/${id}/keys`, { name: "k" })) as { id: string };
    const refused = await admin("POST", `/orgs/${account.orgId}/members`, { email, role: "admin" });
    expect(refused.status).toBe(409);
    await operator("PATCH", `/members/${id}`, { role: "billing", email });
    await operator("PATCH", `/members/${id}`, { role: "billing" });
    await operator("DELETE", `/members/${id}`);
    await operator("DELETE", `/members/${id}`);
    expect(
      (await loggedEvents("member.created")).filter(({ subject }) => subject === id),
    ).toHaveLength(1);
    expect(await loggedEvents("member.changed")).toEqual([
      {
        type: "member.changed",
        actor: OPERATOR,
        subject: id,
        data: { changes: { role: { from: "member", to: "billing" } } },
      },
    ]);
    expect(await loggedEvents("member.removed")).toMatchObject([{ actor: OPERATOR, subject: id }]);
    expect(await loggedEvents("key.revoked")).toMatchObject([{ actor: OPERATOR, subject: key.id }]);
  });

  it("records changes to an organization by the owner and by an operator", async () => {
    const path = `/v1/orgs/${account.orgId}`;
    const renamed = await send(path, { method: "PATCH", key: account.key, body: { name: "New" } });
    expect(renamed.status).toBe(200);
    await operator("PATCH", "", { rpm_limit: 7, name: "New" });
    await operator("PATCH", "", { rpm_limit: 7 });
    await operator("PATCH", "", { rpm_limit: null, status: "suspended" });
    expect(await loggedEvents("organization.changed")).toMatchObject([
      {
        actor: OPERATOR,
        data: {
          changes: {
            rpm_limit: { from: 7, to: null },
            status: { from: "active", to: "suspended" },
          },
        },
      },
      { actor: OPERATOR, data: { changes: { rpm_limit: { from: null, to: 7 } } } },
      {
        actor: { kind: "key", id: account.keyId },
        data: { changes: { name: { from: "Contract", to: "New" } } },
      },
    ]);
  });
});

const waiting = async (): Promise<number> => {
  const row = await env.DB.prepare("SELECT count(*) AS n FROM events WHERE org_id = ?")
    .bind(account.orgId)
    .first<{ n: number }>();
  return row?.n ?? 0;
};
/** Adds an event to the database, as if no wallet had read it yet. */
const wait = (id: string): Promise<unknown> =>
  env.DB.prepare(
    `INSERT INTO events VALUES (?, ?, 'key.changed', 'operator', 'admin', 'key_1', '{}', ?)`,
  )
    .bind(id, account.orgId, Date.now())
    .run();
const sweep = (atMs: number): Promise<unknown> =>
  sweepHourly(env.DB, () => atMs, { ...objectsOf(env), outboxes: [] });
/** Makes some of the wallet's calls to the database fail. */
async function failDatabaseCalls(fails: (sql: string) => "before" | "after" | null): Promise<void> {
  await runInDurableObject(env.WALLET.getByName(account.orgId), (object: Wallet) => {
    const objectEnv = (object as unknown as { env: Env }).env;
    const prepare = (sql: string): unknown => ({
      bind: (...values: unknown[]) => {
        const statement = objectEnv.DB.prepare(sql).bind(...values);
        const runWithFault = async (run: () => Promise<unknown>): Promise<unknown> => {
          if (fails(sql) === "before") throw new Error("D1 is down");
          const answer = await run();
          if (fails(sql) === "after") throw new Error("D1's answer was lost");
          return answer;
        };
        return {
          all: () => runWithFault(() => statement.all()),
          first: () => runWithFault(() => statement.first()),
          run: () => runWithFault(() => statement.run()),
        };
      },
    });
    const database = { prepare, batch: (all: D1PreparedStatement[]) => objectEnv.DB.batch(all) };
    const value = Object.create(objectEnv, { DB: { value: database } }) as Env;
    Object.defineProperty(object, "env", { value, configurable: true, writable: true });
  });
}

describe("the transfer of events from the database to the wallet", () => {
  const ID = `evt_${"7".repeat(24)}`;
  const count = async (): Promise<number> => (await log()).filter(({ id }) => id === ID).length;
  beforeEach(async () => {
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    await log(); // removes the events of the account's creation
    await wait(ID);
  });

  it.each([
    [
      "the database can't be read",
      (sql: string) => (sql.startsWith("SELECT id") ? "before" : null),
    ],
    [
      "the read's response is lost",
      (sql: string) => (sql.startsWith("SELECT id") ? "after" : null),
    ],
    [
      "the delete in the database fails",
      (sql: string) => (sql.startsWith("DELETE") ? "before" : null),
    ],
    ["the delete's response is lost", (sql: string) => (sql.startsWith("DELETE") ? "after" : null)],
  ] as const)("stores each event exactly once if %s", async (_, fails) => {
    const stub = env.WALLET.getByName(account.orgId);
    await failDatabaseCalls(fails);
    await stub.takeEvents();
    await abort(stub).catch(() => undefined);
    expect(await count()).toBe(1);
    expect(await waiting()).toBe(0);
    await wait(ID); // a duplicate that arrives late
    expect(await count()).toBe(1);
    expect(await waiting()).toBe(0);
  });

  it("stores each event once despite concurrent calls and an eviction", async () => {
    const stub = env.WALLET.getByName(account.orgId);
    await Promise.all(Array.from({ length: 20 }, () => stub.takeEvents()));
    await evictDurableObject(stub);
    expect([await count(), await waiting()]).toEqual([1, 0]);
  });

  it("includes unused wallets in the hourly sweep", async () => {
    await env.DB.prepare("UPDATE organizations SET used_at = 0 WHERE id = ?")
      .bind(account.orgId)
      .run();
    await sweep(Date.now());
    expect(await waiting()).toBe(0);
    expect(await count()).toBe(1);
  });

  it("stores only one event for a key that expires in a week, even after several sweeps", async () => {
    const DAY = 86_400_000;
    const now = Date.now();
    // Another file's sweep could have been days ahead, so events aren't repeated.
    await env.DB.prepare("DELETE FROM cursors WHERE name = 'expiring'").run();
    await sweep(now);
    const expires_at = new Date(now + 8 * DAY).toISOString();
    const response = await send("/v1/keys", {
      key: account.key,
      body: { name: "ends", expires_at },
    });
    const { id } = await response.json<{ id: string }>();
    for (const days of [0.5, 2, 2, 3]) await sweep(now + days * DAY);
    expect(
      (await loggedEvents("key.expiring")).filter(({ subject }) => subject === id),
    ).toMatchObject([{ actor: { kind: "system", id: null }, data: { expires_at } }]);
  });
});

it("the wallet stores oversized and malformed events in a shortened form", async () => {
  const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const long = "\u0001".repeat(3000);
  const tooLong = [
    { long },
    { changes: { models: { from: [long], to: [long, "b"] }, name: { from: "a", to: "b" } } },
    Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`field ${i}`, "x".repeat(60)])),
    { deep: { a: { b: { c: { d: [long] } } } } },
  ];
  const odd = [{ text: '\u2028"\\\u0001' }, { lone: "\ud800" }, { left_out: [null] }, {}];
  const rows = Array.from({ length: 3065 }, (_, i) => [
    `evt_odd${i}`,
    i < 3000 ? odd[i % odd.length] : tooLong[i % tooLong.length],
    Date.now() - 10_000 + i,
  ]);
  await env.DB.prepare(
    `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
     SELECT value ->> 0, ?1, 'key.changed', 'operator', 'odd', 'key_odd', value -> 1, value ->> 2
     FROM json_each(?2)`,
  )
    .bind(account.orgId, JSON.stringify(rows))
    .run();
  await operator("PATCH", "", { name: "Renamed" });
  await vi.waitFor(
    async () => {
      await env.WALLET.getByName(account.orgId).takeEvents();
      const left = env.DB.prepare("SELECT count(*) AS n FROM events WHERE org_id = ?");
      expect(await left.bind(account.orgId).first()).toEqual({ n: 0 });
    },
    { timeout: 30_000 },
  );
  expect(await loggedEvents("organization.changed")).toHaveLength(1);
  const cut = (await loggedEvents("key.changed")).slice(0, 65).map(({ data }) => data);
  expect(new Set(cut.map((data) => JSON.stringify(data)))).toEqual(
    new Set(
      [
        { left_out: ["long"] },
        {
          changes: { models: {}, name: { from: "a", to: "b" } },
          left_out: ["changes.models.from", "changes.models.to"],
        },
        { left_out: ["data"] },
        { deep: { a: { b: {} } }, left_out: ["deep.a.b.c"] },
      ].map((data) => JSON.stringify(data)),
    ),
  );
  expect(alerts.mock.calls.flat().join("")).toContain('"alert":"event_cut"');
  const { n } = await runInDurableObject(env.WALLET.getByName(account.orgId), (_, { storage }) =>
    storage.sql.exec("SELECT count(*) AS n FROM events WHERE id LIKE 'evt_odd%'").one(),
  );
  expect(n).toBe(3065);
});
