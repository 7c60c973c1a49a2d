import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { selectEventPage } from "../../src/money/wallet/object/event-log.do.ts";
import type { Tx } from "../../src/money/wallet/object/memory.do.ts";
import { openAccount } from "../contract/client.ts";

const OTHERS = 5000;

it("a wallet reads a member's events through an index, among thousands of other members", async () => {
  const { orgId } = await openAccount();
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${OTHERS})
       INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at, room, place)
       SELECT 'evt_' || n, iif(n % 2 = 0, 'member.changed', 'key.created'), 'member', iif(n = 7, 'ben', 'ann'),
         iif(n = 8, 'ben', 'x' || n), '{}', ?1, 'bulk', n FROM numbers`,
      Date.now(),
    );
    const cursors: { readonly rowsRead: number }[] = [];
    const watched = {
      exec: (query: string, ...values: SqlStorageValue[]) => {
        const cursor = sql.exec(query, ...values);
        cursors.push(cursor);
        return cursor;
      },
    };
    const query = { type: null, from: null, to: null, limit: 1000, after: null };
    const tx = { sql: watched, nowMs: Date.now() } as unknown as Tx;
    const page = selectEventPage(tx, { ...query, memberIds: ["ben", "cleo"] });
    expect(page?.events.map(({ id }) => id)).toEqual(["evt_8", "evt_7"]);
    const read = cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
    expect(read).toBeLessThan(50);
  });
});
