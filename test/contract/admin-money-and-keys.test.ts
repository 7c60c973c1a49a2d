import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { addCredits, admin, balanceOf, chat, embed, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount({ credits: 0 });
});

const post = (path: string, body?: unknown): Promise<Response> =>
  admin("POST", `/orgs/${account.orgId}${path}`, body);
const create = (fields: Record<string, unknown>): Promise<Response> =>
  post(`/members/${account.memberId}/keys`, { name: "another", ...fields });
const credit = (amount_micro: unknown, reference: unknown = crypto.randomUUID()) =>
  post("/credits", { amount_micro, reference });

describe("POST /admin/v1/orgs/{id}/credits", () => {
  it("returns the new balance, and adds credits only once per reference", async () => {
    const answer = { credits_micro: 1500 };
    expect(await (await credit(1500, "first")).json()).toEqual(answer);
    await addCredits(account.orgId, 10);
    // The retry returns the first result.
    expect(await (await credit(1500, "first")).json()).toEqual(answer);
    expect(await balanceOf(account.key)).toBe(1510);
  });

  it("adds credits only once for 20 concurrent calls with one reference", async () => {
    await Promise.all(Array.from({ length: 20 }, () => credit(7, "same")));
    expect(await balanceOf(account.key)).toBe(7);
  });

  it("accepts a negative correction, but returns 409 for a correction above the available balance", async () => {
    await addCredits(account.orgId, 1000);
    expect((await credit(-400)).status).toBe(200);
    const response = await credit(-601);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(response, 409)).param).toBe("amount_micro");
    expect(await balanceOf(account.key)).toBe(600);
  });

  it("returns 409 for a repeated reference with a different amount", async () => {
    await credit(5, "r");
    const response = await credit(6, "r");
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(response, 409)).param).toBe("reference");
    expect(await balanceOf(account.key)).toBe(5);
  });

  it("returns 400 if the balance would exceed the largest safe integer", async () => {
    expect((await credit(Number.MAX_SAFE_INTEGER)).status).toBe(200);
    expect((await errorOf(await credit(1), 400)).param).toBe("amount_micro");
    expect(await balanceOf(account.key)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("GET /admin/v1/orgs/{id}/ledger and POST /admin/v1/orgs/{id}/reconcile", () => {
  type Page = {
    readonly rows: readonly Record<string, unknown>[];
    readonly next_after_seq: number;
  };
  const ledger = async (query = ""): Promise<Page> =>
    (await admin("GET", `/orgs/${account.orgId}/ledger${query}`)).json<Page>();

  it("returns credits and charges in order, with each charge's request; the sum is the balance", async () => {
    await addCredits(account.orgId, 100_000, "top-up");
    const answers = [await chat(account.key), await embed(account.key)];
    const { rows, next_after_seq } = await ledger();
    expect(rows[0]).toEqual({
      seq: 1,
      kind: "credit",
      amount_micro: 100_000,
      balance_micro: 100_000,
      created_at: expect.stringMatching(/Z$/),
      reference: "top-up",
      generation_id: null,
    });
    const charges = answers.map((answer) => ({
      kind: "usage",
      amount_micro: -Number(answer.headers.get("x-cost-micro")),
      generation_id: answer.headers.get("x-request-id"),
    }));
    expect(rows.slice(1)).toMatchObject(charges);
    const sum = rows.reduce((total, row) => total + Number(row["amount_micro"]), 0);
    expect(sum).toBe(await balanceOf(account.key));
    expect(rows.at(-1)).toMatchObject({ balance_micro: sum, seq: next_after_seq });
  });

  it("returns every ledger row exactly once across all pages", async () => {
    for (let i = 0; i < 5; i++) await addCredits(account.orgId, 1);
    const first = await ledger("?limit=2");
    const second = await ledger(`?limit=2&after_seq=${first.next_after_seq}`);
    const third = await ledger(`?limit=2&after_seq=${second.next_after_seq}`);
    const seqs = [first, second, third].flatMap((page) => page.rows.map((row) => row["seq"]));
    expect(seqs).toEqual([1, 2, 3, 4, 5]);
    expect(await ledger("?after_seq=5")).toEqual({ rows: [], next_after_seq: 5 });
  });

  it("returns all ledger rows in pages, newest first", async () => {
    for (let i = 0; i < 5; i++) await addCredits(account.orgId, 1);
    await chat(account.key).catch(() => undefined);
    const { rows } = await ledger("?limit=1000");
    const pages: Record<string, unknown>[] = [];
    for (let before = ""; ;) {
      const page = await ledger(`?order=desc&limit=2${before}`);
      pages.push(...page.rows);
      if (page.rows.length < 2) break;
      before = `&before_seq=${String(page.rows.at(-1)?.["seq"])}`;
    }
    expect(pages).toEqual(rows.toReversed());
  });

  it("returns only the newest ledger row for limit=1, even after the wallet is published to the database", async () => {
    await addCredits(account.orgId, 1);
    await addCredits(account.orgId, 2);
    await env.WALLET.getByName(account.orgId).poke();
    const { rows } = await ledger("?order=desc&limit=1");
    expect(rows).toMatchObject([{ seq: 2, amount_micro: 2 }]);
  });

  it("reconciles the wallet with the database without finding a difference", async () => {
    await addCredits(account.orgId, 50_000);
    await chat(account.key);
    const answer = await post("/reconcile");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      credits_micro: await balanceOf(account.key),
      held_micro: 0,
      open_holds: 0,
      differences: [],
      rows_read: expect.any(Number),
    });
  });

  it("continues a reconciliation at its cursor, and restarts for an unknown cursor", async () => {
    const stale = JSON.stringify({ tries: 3, run: { mark: "another", table: "entries" } });
    const first = await post("/reconcile", { within_ms: 0, after: stale });
    const { next_after: after, ...rest } = await first.json<{ next_after: string }>();
    expect(JSON.parse(after)).toEqual({ tries: 4, run: null });
    const second = await (await post("/reconcile", { within_ms: 0, after })).json();
    expect(second).toEqual({ ...rest, rows_read: expect.any(Number) });
  });
});

describe("POST /admin/v1/orgs/{id}/members/{member_id}/keys", () => {
  it("returns 201 with a key that works immediately, and stores the key nowhere", async () => {
    const response = await create({ rpm_limit: 9, scope: "global" });
    expect(response.status).toBe(201);
    const created = await response.json<{ key: string; id: string; prefix: string }>();
    expect(created).toEqual({
      id: expect.stringMatching(/^key_/),
      member_id: account.memberId,
      name: "another",
      prefix: created.key.slice(0, "svc_sk_gbl_eu_live_".length + 4),
      region: "eu",
      scope: "global",
      rpm_limit: 9,
      created_at: expect.stringMatching(/Z$/),
      last_used_at: null,
      revoked: false,
      key: expect.stringMatching(/^svc_sk_gbl_eu_live_/),
    });
    const read = await send("/v1/models", { key: created.key });
    expect(read.headers.get("x-ratelimit-limit-requests")).toBe("9");
    const rows = await env.DB.prepare("SELECT * FROM keys").all();
    expect(JSON.stringify(rows.results)).not.toContain(created.key);
    expect(JSON.stringify(rows.results)).not.toContain(created.key.slice(-20));
  });

  it("uses default values for null fields, and ignores read-only fields", async () => {
    const body = {
      rpm_limit: null,
      scope: null,
      id: "key_mine",
      member_id: crypto.randomUUID(),
      region: "us",
      revoked: true,
      prefix: "svc",
    };
    const created = await (await create(body)).json<Record<string, unknown>>();
    expect(created).toMatchObject({
      rpm_limit: 60,
      scope: "regional",
      region: "eu",
      revoked: false,
    });
    expect(created["id"]).not.toBe("key_mine");
    const response = await send("/v1/models", { key: String(created["key"]) });
    expect(response.headers.get("openai-organization")).toBe(account.orgId);
  });
});
