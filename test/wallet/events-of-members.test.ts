import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import {
  clearRenamedFlags,
  eraseExternalId,
  selectEventPage,
  selectRenamedEvents,
} from "../../src/money/wallet/object/event-log.do.ts";
import type { Tx } from "../../src/money/wallet/object/memory.do.ts";
import { openAccount } from "../contract/client.ts";

const OTHERS = 5000;

it("a wallet finds a member's events among thousands of others through an index", async () => {
  const { orgId } = await openAccount();
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${OTHERS})
       INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at, room, place)
       SELECT 'evt_' || n, iif(n % 2 = 0, 'member.changed', 'key.created'), 'member', iif(n = 7, 'ben', 'ann'),
         iif(n = 8, 'ben', 'x' || n), '{}', ?1, 'bulk', n FROM numbers`,
      Date.now(),
    );
    const { watched, rowsRead } = watch(sql);
    const query = { type: null, from: null, to: null, limit: 1000, after: null };
    const tx = { sql: watched, nowMs: Date.now() } as unknown as Tx;
    const page = selectEventPage(tx, { ...query, memberIds: ["ben", "cleo"] });
    expect(page?.events.map(({ id }) => id)).toEqual(["evt_8", "evt_7"]);
    expect(rowsRead()).toBeLessThan(50);
  });
});

it("the deletion of an end user finds the end user's events among thousands of others through an index", async () => {
  const { orgId } = await openAccount();
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${OTHERS})
       INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at, room, place)
       SELECT 'evt_' || n, iif(n % 2 = 0, 'budget.reached', 'pause.created'), 'system', NULL, 'x' || n,
         json_object('end_user', iif(n IN (7, 8), 'ann', 'x' || n)), ?1, 'bulk', n FROM numbers`,
      Date.now(),
    );
    const { watched, rowsRead } = watch(sql);
    const tx = { sql: watched, memory: {} } as unknown as Tx;
    eraseExternalId(tx, { id: "usr_1", externalId: "ann" });
    expect(rowsRead()).toBeLessThan(50);
    const renamed = sql
      .exec("SELECT id, data FROM events WHERE renamed = 1 ORDER BY seq")
      .toArray();
    const data = '{"end_user":"usr_1"}';
    expect(renamed).toEqual([
      { id: "evt_7", data },
      { id: "evt_8", data },
    ]);
  });
});

it("a webhook gets an event again if the event's second end user is deleted during the delivery", async () => {
  const { orgId } = await openAccount();
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    sql.exec(
      `INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at, room, place)
       VALUES ('evt_1', 'key.changed', 'system', NULL, 'key_1',
         '{"changes":{"end_user":{"from":"ann","to":"ben"}}}', ?, 'bulk', 1)`,
      Date.now(),
    );
    const tx = { sql, memory: {} } as unknown as Tx;
    eraseExternalId(tx, { id: "usr_1", externalId: "ann" });
    const first = selectRenamedEvents(sql, 100);
    eraseExternalId(tx, { id: "usr_2", externalId: "ben" });
    clearRenamedFlags(sql, first);
    const second = selectRenamedEvents(sql, 100);
    expect(second).toMatchObject([{ data: { changes: { end_user: { to: "usr_2" } } } }]);
    clearRenamedFlags(sql, second);
    expect(selectRenamedEvents(sql, 100)).toEqual([]);
  });
});

/** Counts the rows that statements read. */
function watch(sql: SqlStorage) {
  const cursors: { readonly rowsRead: number }[] = [];
  const exec = (query: string, ...values: SqlStorageValue[]) => {
    const cursor = sql.exec(query, ...values);
    cursors.push(cursor);
    return cursor;
  };
  const countRows = (): number => cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
  return { watched: { exec }, rowsRead: countRows };
}
