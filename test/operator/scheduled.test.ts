import { env } from "cloudflare:workers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { refuse } from "../../src/shared/failure.ts";
import { runScheduled } from "../../src/operator/scheduled.ts";
import { sweep } from "../../src/operator/sweep.store.ts";
import { outboxNames } from "../../src/regions/outbox-schedule.ts";
import { bindingsWith, LEFT_ALONE } from "../contract/client.ts";

it("the hourly sweep pokes every outbox, the peers' too, and one that fails stops no other", async () => {
  const poked: string[] = [];
  const getByName = (name: string) => ({
    poke: async () => {
      poked.push(name);
      if (name === "own/0") throw new Error("this one is down");
    },
  });
  const WALLET = { getByName: () => LEFT_ALONE };
  await runScheduled(bindingsWith({ REGION_OUTBOX: { getByName }, WALLET }));
  expect(poked.toSorted()).toEqual([...outboxNames(["us"])].toSorted());
  vi.restoreAllMocks();
});

const deliveries = () => ({ poke: () => Promise.resolve() });
const nobody = () => ({ poke: () => Promise.resolve(refuse({ kind: "storage_unavailable" })) });
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
      const swept = await sweep(env.DB, Date.now(), { wallet, deliveries, outboxes: [] });
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
      env.DB.prepare("DELETE FROM cursors"), // those that did not open would be poked before all others
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
    await sweep(env.DB, Date.now(), { wallet, deliveries, outboxes: [] });
    const own = poked.filter((id) => id.startsWith("sweep-")); // wallets of earlier files may publish their use
    expect(own).toEqual([5, 6, 7, 8, 9, 0, 1, 2, 3, 4].map(idOf));
  });
});

describe("a sweep of more organisations with webhooks than one run may poke", () => {
  const COUNT = 1000;
  beforeAll(() =>
    env.DB.batch([
      env.DB.prepare("UPDATE organizations SET used_at = 0"),
      env.DB.prepare("DELETE FROM cursors"),
      env.DB.prepare("DELETE FROM webhooks"),
      env.DB.prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1)
         INSERT INTO organizations (id, name, slug, region, used_at, created_at)
         SELECT 'hook-' || substr('00000' || n, -5), 'n', 'hook-' || n, 'eu', 0, 1 FROM numbers`,
      ).bind(COUNT),
      // Two webhooks each; of one organisation both are off.
      env.DB.prepare(
        `INSERT INTO webhooks (id, org_id, url, secrets, disabled_reason, created_at, changed_at)
         SELECT 'whk_' || copy.n || organizations.id, organizations.id, 'https://a.b', '[]',
           iif(organizations.id = 'hook-00007', 'gone', NULL), 1, 1
         FROM organizations, (SELECT 0 AS n UNION ALL SELECT 1) AS copy
         WHERE organizations.id LIKE 'hook-%'`,
      ),
    ]),
  );
  afterAll(() =>
    env.DB.batch([
      env.DB.prepare("DELETE FROM webhooks"),
      env.DB.prepare("DELETE FROM organizations WHERE id LIKE 'hook-%'"),
      env.DB.prepare("DELETE FROM cursors"),
    ]),
  );

  it("pokes each once in two runs, those that nobody uses too, and one that fails stops no other", async () => {
    const poked: string[] = [];
    const counted = (orgId: string) => ({
      poke: async () => {
        poked.push(orgId);
        if (orgId === "hook-00003") throw new Error("this one is down");
      },
    });
    for (let run = 1; run <= 2; run++) {
      // oxlint-disable-next-line no-await-in-loop -- one hour after another
      await sweep(env.DB, Date.now(), { wallet: nobody, deliveries: counted, outboxes: [] });
      expect(poked).toHaveLength(run * 800);
    }
    const all = Array.from({ length: COUNT }, (_, n) => `hook-${String(n).padStart(5, "0")}`);
    expect(new Set(poked)).toEqual(new Set(all.filter((id) => id !== "hook-00007")));
    expect(poked.slice(0, 999)).toEqual([...new Set(poked)]);
    vi.restoreAllMocks();
  });
});
