import { env } from "cloudflare:workers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { refuse } from "../../src/lib/failure.ts";
import { runScheduled } from "../../src/operator/scheduled.ts";
import { sweep } from "../../src/operator/sweep.store.ts";
import { outboxNames } from "../../src/regions/outbox-schedule.ts";
import { bindingsWith } from "../contract/client.ts";

it("the hourly sweep pokes every outbox, the peers' too, and one that fails stops no other (149)", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const poked: string[] = [];
  const getByName = (name: string) => ({
    poke: async () => {
      poked.push(name);
      if (name === "own/0") throw new Error("this one is down");
    },
  });
  await runScheduled(bindingsWith({ REGION_OUTBOX: { getByName } }));
  expect(poked.toSorted()).toEqual([...outboxNames(["us"])].toSorted());
  vi.restoreAllMocks();
});

const idOf = (n: number): string => `sweep-${String(n).padStart(5, "0")}`;

describe("a sweep of more wallets than one run may poke", () => {
  const COUNT = 9000;
  beforeAll(() =>
    env.DB.prepare(
      `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1)
       INSERT INTO organizations (id, name, slug, region, used_at, created_at)
       SELECT 'sweep-' || substr('00000' || n, -5), 'n', 'sweep-' || n, 'eu', 9e15, 1 FROM numbers`,
    )
      .bind(COUNT)
      .run(),
  );
  afterAll(() =>
    env.DB.batch([
      env.DB.prepare("DELETE FROM organizations WHERE id LIKE 'sweep-%'"),
      env.DB.prepare("DELETE FROM cursors"),
    ]),
  );

  it("goes on where the last one ended: two runs poke every wallet, six at a time", async () => {
    const poked = new Map<string, number>();
    let [now, most] = [0, 0];
    const wallet = (orgId: string) => ({
      poke: async () => {
        most = Math.max(most, ++now);
        await Promise.resolve();
        now--;
        poked.set(orgId, (poked.get(orgId) ?? 0) + 1);
        return refuse({ kind: "storage_unavailable" });
      },
    });
    for (let run = 1; run <= 2; run++) {
      // oxlint-disable-next-line no-await-in-loop -- one hour after another
      const swept = await sweep(env.DB, Date.now(), { wallet, outboxes: [] });
      expect(swept.poked).toBeGreaterThanOrEqual(8000);
      expect(swept.poked).toBeLessThan(8500);
    }
    const missed = Array.from({ length: COUNT }, (_, n) => idOf(n)).filter((id) => !poked.has(id));
    expect(missed).toEqual([]);
    expect(most).toBe(6);
  });

  it("pokes each once when there are few, wherever the last one ended", async () => {
    await env.DB.batch([
      env.DB.prepare("UPDATE organizations SET used_at = 0 WHERE used_at < 9e15 OR id > ?").bind(
        idOf(9),
      ),
      env.DB.prepare("INSERT OR REPLACE INTO cursors VALUES ('sweep', ?)").bind(idOf(4)),
    ]);
    await env.DB.prepare("DELETE FROM events").run(); // of those for whom events wait there is another test
    const poked: string[] = [];
    const wallet = (orgId: string) => ({
      poke: () => {
        poked.push(orgId);
        return Promise.resolve(refuse({ kind: "storage_unavailable" }));
      },
    });
    expect((await sweep(env.DB, Date.now(), { wallet, outboxes: [] })).poked).toBe(10);
    expect(poked).toEqual([5, 6, 7, 8, 9, 0, 1, 2, 3, 4].map(idOf));
  });
});
