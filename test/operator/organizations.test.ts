import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { success } from "../../src/shared/failure.ts";
import { syncWithDatabase } from "../../src/shared/sync-with-database.ts";
import {
  ADMIN_TOKEN,
  admin,
  errorOf,
  newOrganization,
  send,
  walletsWith,
} from "../contract/client.ts";
import type { MadeOrganization } from "../contract/client.ts";

const DAY = 86_400_000;
const day = (ago: number): string => new Date(Date.now() - ago * DAY).toISOString().slice(0, 10);

type Listed = {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly owner_email: string | null;
  readonly balance_micro: number | null;
  readonly spend_30d_micro: number;
  readonly days_left: number | null;
  readonly last_used_at: string | null;
};

const make = async (): Promise<MadeOrganization> => {
  const response = await admin("POST", "/orgs", newOrganization());
  expect(response.status).toBe(201);
  return response.json<MadeOrganization>();
};
const without = {
  DB: {
    prepare: () => {
      throw new Error("D1_ERROR: the book is down");
    },
  },
};
const lost = (): Promise<never> =>
  Promise.reject(Object.assign(new Error("lost"), { retryable: true }));

/** Returns the tests' bindings, and the organizations whose wallets are called. */
function watchedWallets(): { readonly called: Set<string>; readonly bindings: Env } {
  const called = new Set<string>();
  return { called, bindings: walletsWith((name) => (called.add(name), {})) };
}

type Page = { readonly organizations: readonly Listed[]; readonly total: number };

/** Returns a page of organizations, after checking that no wallet was called. */
async function pageOf(query: string): Promise<Page> {
  const { called, bindings } = watchedWallets();
  const response = await send(`/admin/v1/orgs?${query}`, { key: ADMIN_TOKEN, bindings });
  expect(response.status).toBe(200);
  expect(called.size).toBe(0);
  return response.json<Page>();
}
const listed = async (query: string): Promise<readonly Listed[]> =>
  (await pageOf(query)).organizations;

/**
 * Balance, spend of each of the seven days before today, of today, and of 20 days ago, and days
 * since the last use.
 */
const CUSTOMERS = [
  { balance: 1000, week: 100, today: 5, old: 0, used: 3 },
  { balance: 50, week: 10, today: 0, old: 900, used: null },
  { balance: 7, week: 0, today: 9, old: 1, used: 1 },
  { balance: 0, week: 1, today: 0, old: 0, used: 2 },
  { balance: null, week: 3, today: 0, old: 4000, used: 9 },
] as const;

it("the operator's list of customers sorts by name, balance, spend, runway or last use without wallet calls", async () => {
  const run = `customers ${crypto.randomUUID()}`;
  for (const [n, one] of CUSTOMERS.entries()) {
    const { id: orgId } = (await make()).organization;
    const statements = [
      env.DB.prepare("UPDATE organizations SET name = ? WHERE id = ?").bind(
        `${run} ${(n * 3) % 5}`,
        orgId,
      ),
      one.balance === null
        ? env.DB.prepare("DELETE FROM balances WHERE org_id = ?").bind(orgId)
        : env.DB.prepare("UPDATE balances SET credits_micro = ? WHERE org_id = ?").bind(
            one.balance,
            orgId,
          ),
      env.DB.prepare("UPDATE keys SET last_used_at = ? WHERE org_id = ?").bind(
        one.used === null ? null : Date.now() - one.used * DAY,
        orgId,
      ),
      ...[
        ...Array.from({ length: 7 }, (_, ago) => [ago + 1, one.week] as const),
        [0, one.today] as const,
        [20, one.old] as const,
        [40, 77_777] as const,
      ].map(([ago, cost]) =>
        env.DB.prepare(
          `INSERT INTO daily_usage (org_id, day, requests, prompt_tokens, completion_tokens, cost_micro, seq)
             VALUES (?, ?, 1, 1, 1, ?, 1)`,
        ).bind(orgId, day(ago), cost),
      ),
    ];
    await env.DB.batch(statements);
  }
  const q = `q=${encodeURIComponent(run)}`;
  const all = await listed(q);
  const expected = CUSTOMERS.map(({ balance, week, today, old }) => ({
    balance_micro: balance,
    spend_30d_micro: 7 * week + today + old,
    days_left: balance === null || week === 0 ? null : Math.floor(balance / week),
  }));
  expect(all).toMatchObject(expected);
  const sorts: Readonly<Record<string, (one: Listed) => string | number | null>> = {
    name: ({ name }) => name,
    balance: (one) => one.balance_micro,
    spend: (one) => one.spend_30d_micro,
    runway: (one) => one.days_left,
    used: (one) => one.last_used_at,
  };
  for (const [sort, valueOfRow] of Object.entries(sorts)) {
    for (const [order, sign] of [
      ["asc", 1],
      ["desc", -1],
    ] as const) {
      const values = (await listed(`${q}&sort=${sort}&order=${order}`)).map(valueOfRow);
      const known = values.filter((value) => value !== null);
      const right = known.toSorted((a, b) => sign * (Number(a > b) - Number(a < b)));
      expect([sort, order, values]).toEqual([
        sort,
        order,
        [...right, ...values.filter((value) => value === null)],
      ]);
    }
  }
  const ending = await listed(`${q}&ends_within_days=7`);
  expect(ending.map((one) => one.days_left)).toEqual([5, 0]);
  expect(await listed(`${q}&status=suspended`)).toEqual([]);
  expect(all[0]?.owner_email).toContain("@");
  const pages: string[] = [];
  for (let offset = 0; offset < CUSTOMERS.length; offset += 2) {
    const page = await pageOf(`${q}&limit=2&offset=${offset}`);
    expect(page).toMatchObject({ total: CUSTOMERS.length, limit: 2, offset });
    pages.push(...page.organizations.map(({ id }) => id));
  }
  expect(pages).toEqual(all.map(({ id }) => id));
});

it("the operator's list of customers contains balances only on request", async () => {
  const { organization } = await make();
  const [plain] = await listed(`q=${organization.id}`);
  expect(Object.keys(plain ?? {})).not.toContain("credits_micro");
  expect(await listed(`q=${organization.id}&balance=false`)).toEqual([plain]);
  const response = await admin("GET", `/orgs?q=${organization.id}&balance=true`);
  const balance = { credits_micro: 0, held_micro: 0, open_holds: 0, operator_policy: null };
  expect(await response.json()).toMatchObject({ organizations: [{ ...plain, ...balance }] });
  const bindings = walletsWith(() => ({ balance: lost }));
  const one = await send(`/admin/v1/orgs/${organization.id}`, { key: ADMIN_TOKEN, bindings });
  expect(await one.json()).toMatchObject({ id: organization.id, credits_micro: null });
});

it("POST /orgs creates only one organization and one wallet for concurrent calls with the same slug", async () => {
  const { called, bindings } = watchedWallets();
  const body = newOrganization();
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => send("/admin/v1/orgs", { key: ADMIN_TOKEN, body, bindings })),
  );
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(4);
  for (const answer of refused) expect((await errorOf(answer, 409)).param).toBe("slug");
  const balances = await Promise.all(
    [...called].map((orgId) => env.WALLET.getByName(orgId).balance()),
  );
  expect(balances.filter(({ ok }) => ok)).toHaveLength(1);
});

it("POST /orgs returns 503 and writes nothing if the wallet or the database fails", async () => {
  const body = newOrganization();
  for (const bindings of [walletsWith(() => ({ create: lost })), { ...env, ...without }]) {
    const response = await send("/admin/v1/orgs", {
      key: ADMIN_TOKEN,
      body,
      bindings: bindings as Env,
    });
    expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
  }
  expect((await admin("POST", "/orgs", body)).status).toBe(201);
});

it("a wallet matches the database even if two concurrent changes reach the wallet in the wrong order", async () => {
  const { organization } = await make();
  const path = `/admin/v1/orgs/${organization.id}`;
  const wallet = env.WALLET.getByName(organization.id);
  const [arrived, late] = [Promise.withResolvers<null>(), Promise.withResolvers<null>()];
  let changes = 0;
  const bindings = walletsWith(() => ({
    configure: async (...change: Parameters<typeof wallet.configure>) => {
      if (++changes === 1) {
        arrived.resolve(null);
        await late.promise;
      }
      return wallet.configure(...change);
    },
  }));
  const change = { method: "PATCH", key: ADMIN_TOKEN, bindings };
  const first = send(path, { ...change, body: { status: "suspended", rpm_limit: 5 } });
  await arrived.promise;
  const last = { status: "active", rpm_limit: null };
  expect(await (await send(path, { ...change, body: last })).json()).toMatchObject(last);
  late.resolve(null);
  expect(await (await first).json()).toMatchObject(last);
  expect(await (await admin("GET", `/orgs/${organization.id}`)).json()).toMatchObject(last);
  expect(await wallet.configure({})).toMatchObject({
    value: { suspended: false, rpmLimit: null, priceList: null },
  });
});

it("a change or revocation of a key returns 503 without effect while the database is down", async () => {
  const { organization, key } = await make();
  const path = `/orgs/${organization.id}/keys/${key.id}`;
  const bindings = { ...env, ...without } as unknown as Env;
  for (const sent of [{ method: "PATCH", body: { rpm_limit: 5 } }, { method: "DELETE" }]) {
    const response = await send(`/admin/v1${path}`, { ...sent, key: ADMIN_TOKEN, bindings });
    await errorOf(response, 503);
  }
  const kept = await (await admin("GET", path)).json();
  expect(kept).toMatchObject({ rpm_limit: 60, revoked: false });
  const used = await send("/v1/models", { key: key.key });
  expect([used.status, used.headers.get("x-ratelimit-limit-requests")]).toEqual([200, "60"]);
});

it("the synchronization of an object with the database repeats until the object has the newest values", async () => {
  const book = [1, 2, 3, 3, 3];
  const sent: number[] = [];
  const followed = await syncWithDatabase(0, {
    send: async (row) => success(sent.push(row)),
    reread: async () => book.shift() ?? null,
    isSame: (one, other) => one === other,
  });
  expect([followed, sent]).toEqual([{ ok: true, value: 3 }, [0, 1, 2, 3]]);
});

it("the synchronization of an object with the database fails as overloaded if the database keeps changing", async () => {
  let row = 0;
  const followed = await syncWithDatabase(row, {
    send: async () => success(null),
    reread: async () => ++row,
    isSame: (one, other) => one === other,
  });
  expect(followed).toEqual({ ok: false, failure: { kind: "overloaded" } });
});
