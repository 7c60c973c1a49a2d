import { env } from "cloudflare:workers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { success } from "../../src/shared/failure.ts";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { sweepHourly, continueSweep } from "../../src/operator/sweep.store.ts";
import { allOutboxNames } from "../../src/regions/outbox-schedule.ts";
import { bindingsWith } from "../contract/client.ts";

it("the hourly sweep calls every outbox, including those to other regions, even if one outbox fails", async () => {
  const poked: string[] = [];
  const getByName = (name: string) => ({
    poke: async () => {
      poked.push(name);
      if (name === "own/0") throw new Error("this one is down");
    },
  });
  await runHourlyJobs(bindingsWith({ REGION_OUTBOX: { getByName } }));
  expect(poked.toSorted()).toEqual([...allOutboxNames(["us"])].toSorted());
  vi.restoreAllMocks();
});

const VITALS = {
  openHolds: 1,
  oldestHoldMs: null,
  isUnpublished: false,
  isInConflict: false,
  bytes: 1,
};
const withoutWork = () => ({ poke: () => Promise.resolve() });
const afterLease = (): number => Date.now() + 16 * 60_000;
const idOf = (n: number): string => `sweep-${String(n).padStart(5, "0")}`;

describe("an hourly sweep with too many organizations for one invocation", () => {
  const COUNT = 17_000;
  beforeAll(() =>
    env.DB.batch([
      env.DB.prepare("UPDATE organizations SET used_at = 0"),
      env.DB.prepare("DELETE FROM cursors"),
      env.DB.prepare("DELETE FROM webhooks"),
      env.DB.prepare("DELETE FROM events"),
      env.DB.prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1)
         INSERT INTO organizations (id, name, slug, region, used_at, created_at)
         SELECT 'sweep-' || substr('00000' || n, -5), 'n', 'sweep-' || n, 'eu',
           iif(n % 17 < 16, 9e15, 0), 1 FROM numbers`,
      ).bind(COUNT),
      // Every 17th organization isn't used. Half of those have a webhook each, and every 34th has a
      // disabled one.
      env.DB.prepare(
        `INSERT INTO webhooks (id, org_id, url, secrets, disabled_reason, created_at, changed_at)
         SELECT 'whk_' || id, id, 'https://a.b', '[]',
           iif(substr(id, -5) % 2 = 1, 'gone', NULL), 1, 1
         FROM organizations WHERE id LIKE 'sweep-%' AND used_at = 0`,
      ),
      // One unused and one used organization have a waiting event.
      ...[idOf(16), idOf(17)].map((id) =>
        env.DB.prepare(
          `INSERT INTO events (id, org_id, type, actor_kind, subject, data, created_at)
           VALUES (?1, ?1, 'key.expiring', 'system', 's', '{}', 1)`,
        ).bind(id),
      ),
    ]),
  );
  afterAll(() =>
    env.DB.batch([
      env.DB.prepare("DELETE FROM webhooks"),
      env.DB.prepare("DELETE FROM events"),
      env.DB.prepare("DELETE FROM organizations WHERE id LIKE 'sweep-%'"),
      env.DB.prepare("DELETE FROM cursors"),
    ]),
  );

  it("calls every wallet and webhook once, six at a time, and counts each wallet once", async () => {
    const poked: string[] = [];
    const delivered: string[] = [];
    let [now, most] = [0, 0];
    const wallet = (orgId: string) => ({
      poke: async () => {
        most = Math.max(most, ++now);
        await Promise.resolve();
        now--;
        poked.push(orgId);
        return success(VITALS);
      },
    });
    const deliveries = (orgId: string) => ({
      poke: async () => {
        delivered.push(orgId);
        if (orgId === idOf(50)) throw new Error("this one is down");
      },
    });
    const targets = { wallet, deliveries };
    let depths = await sweepHourly(env.DB, Date.now, { ...targets, outboxes: [] });
    for (let runs = 1; depths === null; runs++) {
      expect(poked.length + delivered.length).toBeGreaterThanOrEqual(8000 * runs);
      expect(poked.length + delivered.length).toBeLessThan(9000 * runs);
      depths = await continueSweep(env.DB, Date.now, targets);
    }
    const all = Array.from({ length: COUNT }, (_, n) => n);
    expect(poked).toEqual(all.filter((n) => n % 17 < 16 || n === 16).map(idOf));
    expect(delivered).toEqual(all.filter((n) => n % 34 === 16).map(idOf));
    expect(most).toBe(6);
    expect(depths.series()["turnpike_holds_open"]).toBe(poked.length);
    expect(await continueSweep(env.DB, Date.now, targets)).toBeNull();
    vi.restoreAllMocks();
  });

  it("runs only one invocation at a time", async () => {
    let second: Promise<unknown> | undefined;
    const poked: string[] = [];
    const wallet = (orgId: string) => ({
      poke: async () => {
        second ??= continueSweep(env.DB, Date.now, targets);
        expect(await second).toBeNull();
        poked.push(orgId);
        return success(VITALS);
      },
    });
    const targets = { wallet, deliveries: withoutWork };
    let depths = await sweepHourly(env.DB, Date.now, { ...targets, outboxes: [] });
    while (depths === null) depths = await continueSweep(env.DB, Date.now, targets);
    expect(poked.length).toBe(new Set(poked).size);
  });

  it("continues at the organization where the platform stopped an invocation", async () => {
    const poked: string[] = [];
    let stopsAt = 3000;
    const wallet = (orgId: string) => ({
      poke: async () => {
        if (poked.length === stopsAt) await new Promise(() => undefined);
        poked.push(orgId);
        return success(VITALS);
      },
    });
    const targets = { wallet, deliveries: withoutWork };
    void sweepHourly(env.DB, Date.now, { ...targets, outboxes: [] });
    await expect.poll(() => poked.length).toBe(stopsAt);
    stopsAt = -1;
    expect(await continueSweep(env.DB, Date.now, targets)).toBeNull();
    let depths = null;
    while (depths === null) depths = await continueSweep(env.DB, afterLease, targets);
    expect(new Set(poked).size).toBe(16_001);
    expect(poked.length).toBeLessThan(16_001 + 600); // the interrupted page is called again
  });
});
