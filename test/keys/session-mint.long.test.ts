import { env } from "cloudflare:workers";
import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it } from "vitest";
import { mintSession, verifySession } from "../../src/accounts/keys/session-token.ts";
import { chat, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { countedBindings } from "../contract/counted-bindings.ts";
import { keySecrets, shiftClock } from "./key-fixture.ts";

afterEach(() => shiftClock(null));

const MINTED = 1_000_000;
const OVER_HTTP = 5_000;
const AT_ONCE = 50;

/** Creates an account with nothing left to write to the database. */
async function quietAccount(): Promise<Account> {
  const account = await openAccount();
  const wallet = env.WALLET.getByName(account.orgId);
  await wallet.takeEvents();
  await wallet.poke();
  return account;
}

interface Rows {
  /** The organization's rows by table, in the region's database and its wallet. */
  own: Record<string, number>;
  /**
   * Rows of all tables of the database, and key objects. Other organizations' alarms continue
   * meanwhile.
   */
  all: number;
}

/**
 * Returns a condition for an organization's rows of a database table, by the columns that the table
 * has.
 */
function ownRows(columns: string): string {
  if (columns.includes("org_id")) return "org_id = ?1";
  if (columns.includes("key_id")) return "key_id IN (SELECT id FROM keys WHERE org_id = ?1)";
  return columns.split(",").includes("id") ? "?1 IN (id)" : "?1 IS NULL";
}

async function everyRow(orgId: string): Promise<Rows> {
  const { results: tables } = await env.DB.prepare(
    `SELECT m.name, group_concat(p.name) AS columns FROM sqlite_master m, pragma_table_info(m.name) p
     WHERE m.type = 'table' AND m.name NOT LIKE '\\_%' ESCAPE '\\' AND m.name NOT LIKE 'sqlite%' GROUP BY m.name`,
  ).all<{ name: string; columns: string }>();
  const own: Record<string, number> = {};
  let all = (await listDurableObjectIds(env.KEY_REGISTER)).length;
  for (const { name, columns } of tables) {
    if (name === "cursors") continue; // the sweep writes one row
    const counted = `SELECT count(*) AS n, count(*) FILTER (WHERE ${ownRows(columns)}) AS own FROM ${name}`;
    const row = await env.DB.prepare(counted).bind(orgId).first<{ n: number; own: number }>();
    own[`book ${name}`] = row?.own ?? 0;
    all += row?.n ?? 0;
  }
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    for (const table of ["sessions", "requests", "events", "end_users", "keys"]) {
      own[`wallet ${table}`] = sql
        .exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)
        .one().n;
    }
  });
  return { own, all };
}

/**
 * Checks that the organization has no new rows, and that fewer rows than a fifth of the sessions
 * were added anywhere.
 */
async function expectNothingStored(orgId: string, before: Rows, sessions: number): Promise<void> {
  const now = await everyRow(orgId);
  expect(now.own).toEqual(before.own);
  expect(now.all - before.all).toBeLessThan(sessions / 5);
}

it(`session tokens have unique IDs, are valid, and need no database row: ${MINTED} tokens`, async () => {
  const { orgId } = await quietAccount();
  const before = await everyRow(orgId);
  expect(before.own).toMatchObject({
    "book organizations": 1,
    "book keys": 1,
  });
  const mint = { home: "eu", scope: "regional", keyHash: "0f".repeat(32), orgId } as const;
  const terms = {
    madeAt: 1,
    cut: 0,
    createdAt: Date.now(),
    expiresAt: Date.now() + 60_000,
    endUser: null,
    budgetMicro: null,
    allowedModels: null,
    rpmLimit: null,
    origins: null,
  };
  const ids = new Set<string>();
  for (let done = 0; done < MINTED; done += 1000) {
    const batch = await Promise.all(
      Array.from({ length: 1000 }, () => mintSession({ ...mint, secrets: keySecrets() }, terms)),
    );
    for (const { session } of batch) ids.add(session.id);
    const [one] = batch;
    expect((await verifySession(one?.token ?? "", keySecrets()))?.shown.session).toEqual(
      one?.session,
    );
  }
  expect(ids.size).toBe(MINTED);
  await expectNothingStored(orgId, before, MINTED);
});

it(`session tokens need no row before their first use, and forged tokens cause no lookup: ${OVER_HTTP} tokens`, async () => {
  const account = await quietAccount();
  await send("/v1/key", { key: account.key });
  const before = await everyRow(account.orgId);
  const tokens: string[] = [];
  while (tokens.length < OVER_HTTP) {
    // the key's requests per minute
    if (tokens.length % 500 === 0) shiftClock((tokens.length / 500) * 61_000);
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => send("/v1/sessions", { key: account.key, body: {} })),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(201);
      tokens.push((await answer.json<{ token: string }>()).token);
    }
  }
  await expectNothingStored(account.orgId, before, OVER_HTTP);
  const counted = countedBindings();
  for (const token of tokens) {
    const at = token.length - 20;
    const forged = token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
    expect((await chat(forged, {}, { bindings: counted.bindings })).status).toBe(401);
  }
  expect([counted.objects, counted.statements]).toEqual([0, 0]);
  await expectNothingStored(account.orgId, before, OVER_HTTP);
  expect((await chat(tokens[0] ?? "")).status).toBe(200);
  expect((await everyRow(account.orgId)).own["wallet sessions"]).toBe(1);
});
