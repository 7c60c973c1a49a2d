import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { refuse, success } from "../../src/shared/failure.ts";
import { NEWEST_MIGRATION } from "../../src/accounts/organizations/organizations.store.ts";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { ADMIN_TOKEN, bindingsWith, chat, openAccount, send } from "./client.ts";
import { mockUpstream, UPSTREAM_VARS, upstreamError } from "./upstream.ts";

type Problem = { readonly kind: string; readonly message: string };
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Returns a region whose objects and peers work, except for `changes`. */
function region(changes: Readonly<Record<string, unknown>> = {}): Env {
  return bindingsWith({
    WALLET: walletsThat(() => success({})),
    REGION_OUTBOX: outboxesWith({}),
    REGION_METRICS: metricsWith({}),
    ...changes,
  });
}

function walletsThat(balance: (orgId: string) => unknown) {
  return { getByName: (name: string) => ({ balance: async () => balance(name) }) };
}

function outboxesWith(depth: object) {
  const whole = { waiting: 0, dead: 0, parked: 0, oldestMs: null, ...depth };
  return { getByName: () => ({ depth: async () => whole }) };
}

function metricsWith(read: object) {
  const nowMs = Date.now();
  const gauges = { atMs: nowMs, series: {} };
  const jobs = { payments: { atMs: nowMs, series: {} } };
  const whole = { sinceMs: nowMs - 100 * HOUR, counters: {}, gauges, views: {}, jobs, ...read };
  return { getByName: () => ({ read: async () => whole, add: async () => undefined }) };
}

async function problems(bindings: Env): Promise<readonly Problem[]> {
  const response = await send("/admin/v1/health", { key: ADMIN_TOKEN, bindings });
  expect(response.status).toBe(200);
  return (await response.json<{ problems: readonly Problem[] }>()).problems;
}

/** Makes the peer return this response to every request. */
function mockPeer(answer: () => Response | Promise<Response>) {
  return vi.spyOn(globalThis, "fetch").mockImplementation(async () => answer());
}
const throwUnavailable = (): never => {
  throw new Error("D1_ERROR: away");
};
const respondAsPeer = () => Response.json({ ok: false, failure: { kind: "invalid_api_key" } });

beforeEach(async () => {
  for (const level of ["log", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation(() => undefined);
  }
  mockPeer(respondAsPeer);
  await env.DB.prepare("DELETE FROM cursors").run();
});

describe("GET /admin/v1/health", () => {
  it("reports no problem in a healthy region", async () => {
    expect(await problems(region())).toEqual([]);
  });

  it.each([
    ["refuse", () => refuse({ kind: "storage_unavailable" })],
    [
      "throw",
      () => {
        throw new Error("gone");
      },
    ],
  ])("reports wallets that can't be opened because they %s", async (_how, balance) => {
    const { orgId } = await openAccount();
    await env.DB.prepare("UPDATE organizations SET used_at = ? WHERE id = ?")
      .bind(Date.now(), orgId)
      .run();
    const found = await problems(region({ WALLET: walletsThat(balance) }));
    expect(found).toMatchObject([{ kind: "wallets_unavailable" }]);
    expect(found[0]?.message).toMatch(/^(\d) of \1 checked wallets do not open/);
  });

  it("reports a lost wallet from the next sweep until the wallet works again", async () => {
    const { orgId, key } = await openAccount();
    await chat(key);
    const wallet = env.WALLET.getByName(orgId);
    const WALLET = env.WALLET;
    // Earlier tests left organizations without wallets, so none of them may be called.
    await env.DB.batch([
      env.DB.prepare("UPDATE organizations SET used_at = 0"),
      env.DB.prepare("DELETE FROM cursors WHERE name = 'unavailable'"),
      env.DB.prepare("DELETE FROM events"),
    ]);
    await env.DB.prepare("UPDATE organizations SET used_at = ? WHERE id = ?")
      .bind(Date.now(), orgId)
      .run();
    await runInDurableObject(wallet, async (_object, state) => {
      await state.storage.deleteAll();
      state.abort("its storage is gone");
    }).catch(() => undefined);
    await runHourlyJobs(bindingsWith({}));
    // A lost wallet can't be used, so it isn't among recently used ones, but is called anyway.
    await env.DB.prepare("UPDATE organizations SET used_at = 0").run();
    for (let sweeps = 1; sweeps <= 2; sweeps++) {
      expect(await problems(region({ WALLET }))).toEqual([
        {
          kind: "wallets_unavailable",
          // Pending work of earlier tests can have used other organizations.
          message: expect.stringMatching(
            new RegExp(`^1 of \\d+ checked wallets do not open, such as ${orgId}\\.$`),
          ) as string,
        },
      ]);
      await runHourlyJobs(bindingsWith({}));
    }
    const path = `/admin/v1/orgs/${orgId}/rebuild-wallet`;
    expect((await send(path, { key: ADMIN_TOKEN, body: {} })).status).toBe(200);
    expect(await problems(region({ WALLET }))).toEqual([]);
  });

  it("reports a model if its only provider rejects calls from at least one isolate", async () => {
    const { key } = await openAccount();
    mockUpstream(() => upstreamError(401, { message: "bad key" }));
    await env.DB.prepare("UPDATE organizations SET used_at = 0").run();
    const here = region({ ...UPSTREAM_VARS, WALLET: env.WALLET });
    expect((await chat(key, { model: "mock/chat" }, { bindings: here })).status).toBe(502);
    mockPeer(respondAsPeer);
    const refused = [
      {
        kind: "model_refused",
        message: "1 models are rejected by all their providers, such as mock/chat (mock:up-chat).",
      },
    ];
    expect(await problems(here)).toEqual(refused);
    const series = {
      'turnpike_routes_left_out_isolates{route="mock:up-chat",state="disabled"}': 1,
    };
    const views = { another: { atMs: Date.now(), series } };
    const elsewhere = region({ ...UPSTREAM_VARS, REGION_METRICS: metricsWith({ views }) });
    expect(await problems(elsewhere)).toEqual(refused);
    const long = { another: { atMs: Date.now() - HOUR, series } };
    const gone = region({ ...UPSTREAM_VARS, REGION_METRICS: metricsWith({ views: long }) });
    expect(await problems(gone)).toEqual([]);
  });

  it.each([
    ["doesn't respond", () => Promise.reject(new Error("lost")), /: lost\.$/],
    [
      "doesn't accept our signature",
      () => new Response("{}", { status: 404, headers: { "x-request-id": "req_1" } }),
      /: status 404\.$/,
    ],
    [
      "is behind a zone that returns a challenge",
      () => new Response("<html>", { status: 403, headers: { "cf-mitigated": "challenge" } }),
      /: status 403 from before the peer's Worker, a challenge\.$/,
    ],
    ["returns an unexpected response", () => Response.json({ hello: 1 }), /as a peer does\.$/],
  ])("reports a problem if the other region %s", async (_how, answer, message) => {
    mockPeer(answer);
    const found = await problems(region());
    expect(found).toMatchObject([{ kind: "peer_unreachable" }]);
    expect(found[0]?.message).toMatch(message);
  });

  it.each([
    ["over two hours ago", { gauges: { atMs: Date.now() - 2 * HOUR - 60_000, series: {} } }, true],
    ["an hour ago", { gauges: { atMs: Date.now() - HOUR, series: {} } }, false],
    ["never, after a hundred hours", { gauges: null }, true],
    ["never, within the first hour", { gauges: null, sinceMs: Date.now() - HOUR }, false],
  ])(
    "decides from the last run whether the hourly sweep is late: %s",
    async (_when, read, isLate) => {
      const found = await problems(region({ REGION_METRICS: metricsWith(read) }));
      expect(found.map(({ kind }) => kind)).toEqual(isLate ? ["sweep_late"] : []);
    },
  );

  it.each([
    [
      "eight minutes ago",
      { jobs: { payments: { atMs: Date.now() - 8 * MINUTE, series: {} } } },
      true,
    ],
    [
      "six minutes ago",
      { jobs: { payments: { atMs: Date.now() - 6 * MINUTE, series: {} } } },
      false,
    ],
    ["never, after a hundred hours", { jobs: {} }, true],
    ["never, after six minutes", { jobs: {}, sinceMs: Date.now() - 6 * MINUTE }, false],
  ])(
    "decides from the last success whether the payments sweep is late: %s",
    async (_when, read, isLate) => {
      const found = await problems(region({ REGION_METRICS: metricsWith(read) }));
      expect(found.map(({ kind }) => kind)).toEqual(isLate ? ["payments_not_swept"] : []);
    },
  );

  it.each([
    ["outbox_gave_up", { dead: 1 }],
    ["outbox_gave_up", { parked: 1 }],
    ["outbox_late", { waiting: 1, oldestMs: 600_001 }],
    [null, { waiting: 1, oldestMs: 600_000 }],
  ])("reports %s for outboxes with %j", async (kind, depth) => {
    const found = await problems(region({ REGION_OUTBOX: outboxesWith(depth) }));
    expect(found.map((one) => one.kind)).toEqual(kind === null ? [] : [kind]);
  });

  it("reports an outbox that does not respond", async () => {
    const silent = { getByName: () => ({ depth: () => Promise.reject(new Error("gone")) }) };
    expect(await problems(region({ REGION_OUTBOX: silent }))).toMatchObject([
      { kind: "outbox_silent" },
    ]);
  });

  it("reports charges that wait for a region that is missing from PEERS", async () => {
    const whole = { waiting: 0, dead: 0, parked: 0, oldestMs: null };
    const REGION_OUTBOX = {
      getByName: (name: string) => ({
        depth: async () => ({ ...whole, waiting: name === "us/3" ? 2 : 0 }),
      }),
    };
    expect(await problems(region({ REGION_OUTBOX }))).toEqual([]);
    const alone = await problems(region({ REGION_OUTBOX, PEERS: "[]" }));
    expect(alone).toMatchObject([
      { kind: "outbox_orphaned", message: expect.stringContaining("us/3") },
    ]);
  });

  it("reports a database without the newest migration", async () => {
    expect(env.TEST_MIGRATIONS.at(-1)?.name).toBe(NEWEST_MIGRATION);
    const remove = env.DB.prepare("DELETE FROM d1_migrations WHERE name = ?");
    await remove.bind(NEWEST_MIGRATION).run();
    const found = await problems(region());
    const add = env.DB.prepare("INSERT INTO d1_migrations (name) VALUES (?)");
    await add.bind(NEWEST_MIGRATION).run();
    expect(found).toMatchObject([
      { kind: "migrations_missing", message: expect.stringContaining(NEWEST_MIGRATION) },
    ]);
  });

  it("reports an unavailable database and a database that contradicts wallets", async () => {
    const gauges = { atMs: Date.now(), series: { turnpike_wallets_in_conflict: 2 } };
    const found = await problems(region({ REGION_METRICS: metricsWith({ gauges }) }));
    expect(found).toMatchObject([{ kind: "wallets_in_conflict" }]);
    const without = await problems(region({ DB: { prepare: throwUnavailable } }));
    expect(without).toMatchObject([{ kind: "book_away" }]);
  });
});
