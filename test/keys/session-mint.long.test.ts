import { env } from "cloudflare:workers";
import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import { mintSession, verifySession } from "../../src/keys/session-token.ts";
import { chat, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { countedBindings } from "../contract/counted-bindings.ts";
import { keySecrets, shiftClock } from "./key-fixture.ts";

afterEach(() => {
  shiftClock(null);
  vi.restoreAllMocks();
});

const MINTED = 1_000_000;
const OVER_HTTP = 5_000;
const AT_ONCE = 50;

/** An account that has told the book all that it had to tell. */
async function quietAccount(): Promise<Account> {
  const account = await openAccount();
  const wallet = env.WALLET.getByName(account.orgId);
  await wallet.takeEvents();
  await wallet.poke();
  return account;
}

/** Rows of every table of the region's book, and of one wallet; and how many objects there are. */
async function everyRow(orgId: string): Promise<Record<string, number>> {
  const { results: tables } = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'",
  ).all<{ name: string }>();
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const row = await env.DB.prepare(`SELECT count(*) AS n FROM ${name}`).first<{ n: number }>();
    counts[`book ${name}`] = row?.n ?? 0;
  }
  await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    for (const table of ["sessions", "requests", "events", "end_users", "keys"]) {
      counts[`wallet ${table}`] = sql
        .exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)
        .one().n;
    }
  });
  const registers = await listDurableObjectIds(env.KEY_REGISTER);
  return { ...counts, registers: registers.length };
}

it(`${MINTED} sessions minted by the function: ids of their own, each verifies, and nothing is stored`, async () => {
  const { orgId } = await quietAccount();
  const before = await everyRow(orgId);
  const mint = { home: "eu", scope: "regional", keyHash: "0f".repeat(32), orgId } as const;
  const terms = {
    madeAt: 1,
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
  expect(await everyRow(orgId)).toEqual(before);
});

it(`${OVER_HTTP} sessions over HTTP: no row anywhere until one is used; forged ones ask nobody`, async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  const account = await quietAccount();
  await send("/v1/key", { key: account.key });
  const before = await everyRow(account.orgId);
  const tokens: string[] = [];
  while (tokens.length < OVER_HTTP) {
    if (tokens.length % 500 === 0) shiftClock((tokens.length / 500) * 61_000); // a minute of its key's
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => send("/v1/sessions", { key: account.key, body: {} })),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(201);
      tokens.push((await answer.json<{ token: string }>()).token);
    }
  }
  expect(await everyRow(account.orgId)).toEqual(before);
  const counted = countedBindings();
  for (const token of tokens) {
    const at = token.length - 20;
    const forged = token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
    expect((await chat(forged, {}, { bindings: counted.bindings })).status).toBe(401);
  }
  expect([counted.objects, counted.statements]).toEqual([0, 0]);
  expect(await everyRow(account.orgId)).toEqual(before);
  expect((await chat(tokens[0] ?? "")).status).toBe(200);
  expect((await everyRow(account.orgId))["wallet sessions"]).toBe(1);
});
