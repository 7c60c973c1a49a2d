import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { micros } from "../../src/shared/money.ts";
import { findDifferingBills } from "../../src/operator/margin.ts";
import { proxyOf } from "../../scripts/workers/replaced.ts";
import {
  ADMIN_TOKEN,
  HELLO,
  admin,
  bindingsWith,
  chat,
  embed,
  openAccount,
  send,
} from "./client.ts";
import type { Account } from "./client.ts";
import { mockUpstream, upstreamBindings, USAGE } from "./upstream.ts";
import { GENERATION, holdOf, stubOf, valueOf } from "../wallet/wallet-fixture.ts";

const today = new Date().toISOString().slice(0, 10);
const HOURS_MS = 3_600_000;

type Group = {
  readonly day: string;
  readonly group: string;
  readonly requests: number;
  readonly charged_micro: number;
  readonly bought_micro: number;
  readonly margin_micro: number;
  readonly unknown_requests: number;
  readonly billed_micro: number | null;
  readonly difference_micro: number | null;
};
type Receipt = {
  readonly cost_micro: number;
  readonly model: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
};

/**
 * Returns a database with only this organization, because other tests leave organizations, some
 * without a wallet.
 */
function databaseOf(orgId: string): D1Database {
  const prepare = (sql: string): D1PreparedStatement =>
    env.DB.prepare(sql.replace("WHERE id > ?1", `WHERE id = '${orgId}' AND ?1 = ''`));
  return proxyOf(env.DB, (name) => (name === "prepare" ? prepare : undefined));
}

async function marginBy(by: string, orgId: string): Promise<readonly Group[]> {
  const query = `from=${today}&to=${today}&by=${by}`;
  const bindings = bindingsWith({ DB: databaseOf(orgId) });
  const response = await send(`/admin/v1/margin?${query}`, { key: ADMIN_TOKEN, bindings });
  expect(response.status).toBe(200);
  return (await response.json<{ data: Group[] }>()).data;
}
const slugOf = async ({ orgId }: Account): Promise<string> =>
  (await (await admin("GET", `/orgs/${orgId}`)).json<{ slug: string }>()).slug;
const receiptsOf = async ({ key }: Account): Promise<readonly Receipt[]> => {
  const response = await send("/v1/generations?status=settled&limit=100", { key });
  return (await response.json<{ generations: Receipt[] }>()).generations;
};

/** Creates a price list with this percentage for all models, and returns its name. */
async function listAt(percent: number): Promise<string> {
  const list = `p-${percent}-${crypto.randomUUID().slice(0, 8)}`;
  await env.DB.prepare(
    "INSERT INTO prices (id, list, item, from_at, percent, posted_by, created_at) VALUES (?, ?, '*', 1, ?, 't', 0)",
  )
    .bind(`prc_${list}`, list, percent)
    .run();
  return list;
}

/** Calls a model whose provider reports usage and an error, then the next model. */
async function chatAfterFailure(next: string, finish = "error") {
  const account = await openAccount();
  const message = { role: "assistant", content: "hi" };
  const choices = [{ index: 0, message, finish_reason: finish }];
  mockUpstream(() => Response.json({ choices, usage: USAGE }));
  const bindings = upstreamBindings({ UPSTREAM_HEADERS_MS: "50" });
  const body = { models: ["mock/chat", next], messages: HELLO, max_tokens: 1 };
  const response = await send("/v1/chat/completions", { key: account.key, body, bindings });
  return { account, response };
}

describe("GET /admin/v1/margin", () => {
  it("compares customers' charges with providers' costs for JSON, embeddings, streams and estimated usage", async () => {
    const account = await openAccount();
    await admin("PATCH", `/orgs/${account.orgId}`, { price_list: await listAt(50) });
    const models = ["sandbox/echo", "sandbox/no-usage", "sandbox/think"];
    for (const model of models) {
      await (await chat(account.key, { model, stream: model !== "sandbox/echo" })).text();
    }
    await (await embed(account.key)).text();
    const receipts = await receiptsOf(account);
    const bought = receipts.map(
      ({ prompt_tokens: prompt, completion_tokens: completion }) => prompt + 2 * completion,
    );
    const slug = await slugOf(account);
    const own = (await marginBy("organization", account.orgId)).find(({ group }) => group === slug);
    const charged = receipts.reduce((sum, { cost_micro: cost }) => sum + cost, 0);
    const cost = bought.reduce((sum, one) => sum + one, 0);
    expect(own).toEqual({
      day: today,
      group: slug,
      requests: receipts.length,
      charged_micro: charged,
      bought_micro: cost,
      margin_micro: charged - cost,
      unknown_requests: 0,
      billed_micro: null,
      difference_micro: null,
    });
    expect(charged).toBeGreaterThan(cost);
    expect(receipts.length).toBeGreaterThan(3);
    const byModel = (await marginBy("model", account.orgId)).map(({ group }) => group);
    expect(byModel).toEqual(expect.arrayContaining(["sandbox/echo", "sandbox/embed"]));
    const text = await (await send("/v1/generations", { key: account.key })).text();
    expect(text).not.toContain("bought"); // customers never see a provider's cost
  });

  it("includes the cost of an interrupted stream that was not charged to the customer", async () => {
    const account = await openAccount();
    const stream = await (await chat(account.key, { model: "sandbox/cut", stream: true })).text();
    expect(stream).toContain('"error"');
    const [sum] = await marginBy("model", account.orgId);
    expect(sum).toMatchObject({ group: "sandbox/cut", requests: 1, charged_micro: 0 });
    expect(sum?.bought_micro).toBeGreaterThan(0);
    expect(sum?.margin_micro).toBe(0 - (sum?.bought_micro ?? 0));
    expect(await receiptsOf(account)).toEqual([]);
  });

  it("includes the estimated cost of a request that timed out at the provider", async () => {
    const account = await openAccount();
    const bindings = bindingsWith({ UPSTREAM_HEADERS_MS: "50" });
    const body = { model: "sandbox/stall", messages: HELLO, max_tokens: 1 };
    const response = await send("/v1/chat/completions", { key: account.key, body, bindings });
    expect(response.status).toBe(502);
    const [sum] = await marginBy("model", account.orgId);
    expect(sum).toMatchObject({ group: "sandbox/stall", requests: 1, charged_micro: 0 });
    expect(sum?.bought_micro).toBeGreaterThan(0);
    expect(await receiptsOf(account)).toEqual([]);
  });

  it("includes the estimated cost of a timed-out call even if another model responded after the call", async () => {
    const account = await openAccount();
    const bindings = bindingsWith({ UPSTREAM_HEADERS_MS: "50" });
    const models = ["sandbox/stall", "sandbox/echo"];
    const body = { models, messages: HELLO, max_tokens: 1 };
    const response = await send("/v1/chat/completions", { key: account.key, body, bindings });
    expect(response.status).toBe(200);
    const text = await response.text();
    expect(text).not.toContain("lost");
    const [echo, stall] = await marginBy("model", account.orgId);
    const [receipt] = await receiptsOf(account);
    expect(echo).toMatchObject({ group: "sandbox/echo", requests: 1, margin_micro: 0 });
    expect(echo?.charged_micro).toBe(receipt?.cost_micro);
    expect(stall).toMatchObject({ group: "sandbox/stall", charged_micro: 0, unknown_requests: 0 });
    expect(stall?.bought_micro).toBeGreaterThan(0);
    expect(stall?.margin_micro).toBe(0 - (stall?.bought_micro ?? 0));
    const [provider] = await marginBy("provider", account.orgId);
    const cost = (echo?.bought_micro ?? 0) + (stall?.bought_micro ?? 0);
    expect(provider).toMatchObject({ group: "sandbox", bought_micro: cost });
    const shown = await (await send("/v1/generations", { key: account.key })).text();
    expect(shown).not.toContain("lost");
  });

  it("includes the estimated cost of a timed-out call that followed a failed call with reported usage", async () => {
    const { account, response } = await chatAfterFailure("sandbox/stall");
    expect(response.status).toBe(502);
    const [charged, stall] = await marginBy("model", account.orgId);
    const [receipt] = await receiptsOf(account);
    expect(receipt?.cost_micro).toBeGreaterThan(0);
    expect(charged).toMatchObject({ group: "mock/chat", charged_micro: receipt?.cost_micro });
    expect(stall).toMatchObject({ group: "sandbox/stall", requests: 1, charged_micro: 0 });
    expect(stall?.bought_micro).toBeGreaterThan(0);
  });

  it.each([
    ["error", "that the request canMakeCall have caused"],
    ["abort", "that the provider caused"],
  ])("counts a failed call with reported usage if another model responded: %s, %s", async (why) => {
    const { account, response } = await chatAfterFailure("sandbox/echo", why);
    expect(response.status).toBe(200);
    const sums = await marginBy("model", account.orgId);
    const [receipt] = await receiptsOf(account);
    expect(sums).toMatchObject([
      // nobody has configured what this provider charges
      { group: "mock/chat", requests: 1, charged_micro: 0, unknown_requests: 1 },
      { group: "sandbox/echo", requests: 1, charged_micro: receipt?.cost_micro, margin_micro: 0 },
    ]);
  });

  it("assigns the cost of each timed-out call to the called provider", async () => {
    const { orgId } = await openAccount();
    const hold = holdOf(10);
    valueOf(await stubOf(orgId).hold(hold));
    const failed = [
      { route: "first:a", why: "timeout", lost: { model: "one/a", cost: 7 } },
      { route: "second:b", why: "http_500" },
      { route: "third:c", why: "timeout", lost: { model: "own/c", cost: null } },
    ];
    const usage = { ...GENERATION.usage, input: 2_000_000, output: 0 };
    const bought = { input: 4, cached: 0, cacheWrite: 0, output: 0 };
    const absorbed = { ...GENERATION, provider: "last", usage, bought, failed };
    valueOf(await stubOf(orgId).void(hold.id, absorbed));
    const sums = (await marginBy("provider", orgId)).map(
      ({ group, requests, bought_micro: cost, unknown_requests: unknown }) => [
        group,
        requests,
        cost,
        unknown,
      ],
    );
    expect(sums).toEqual([
      ["first", 1, 7, 0],
      ["last", 1, 8, 0],
      ["third", 1, 0, 1],
    ]);
  });

  it("sums all readable wallets, and names organizations with a lost wallet", async () => {
    const account = await openAccount();
    await (await chat(account.key)).text();
    const lost = { id: crypto.randomUUID(), slug: `lost-${crypto.randomUUID().slice(0, 8)}` };
    await env.DB.prepare(
      "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?, 'Lost', ?, 'eu', 1)",
    )
      .bind(lost.id, lost.slug)
      .run();
    const both = proxyOf(env.DB, (name) => {
      if (name !== "prepare") return undefined;
      const ids = `'${account.orgId}', '${lost.id}'`;
      return (sql: string) =>
        env.DB.prepare(sql.replace("WHERE id > ?1", `WHERE id IN (${ids}) AND ?1 = ''`));
    });
    const response = await send(`/admin/v1/margin?from=${today}&to=${today}&by=organization`, {
      key: ADMIN_TOKEN,
      bindings: bindingsWith({ DB: both }),
    });
    expect(response.status).toBe(200);
    const page = await response.json<{ data: readonly Group[]; missing: readonly string[] }>();
    expect(page.missing).toEqual([lost.slug]);
    expect(page.data).toMatchObject([{ group: await slugOf(account), requests: 1 }]);
    await env.DB.prepare("DELETE FROM organizations WHERE id = ?").bind(lost.id).run();
  });
});

describe("POST /admin/v1/costs", () => {
  it("reports a provider's bill only if the bill differs by more than 2 % from the gateway's count", () => {
    const counted = { day: today, group: "openai", requests: 1, chargedMicro: 0, unknown: 0 };
    const findingCount = (boughtMicro: number, billedMicro: number): number =>
      findDifferingBills(
        [{ ...counted, boughtMicro }],
        [{ provider: "openai", day: today, billedMicro }],
      ).length;
    expect([
      findingCount(100, 98),
      findingCount(98, 100),
      findingCount(100, 97),
      findingCount(97, 100),
      findingCount(0, 0),
    ]).toEqual([0, 0, 1, 1, 0]);
    expect(
      findDifferingBills([], [{ provider: "openai", day: today, billedMicro: 5 }]),
    ).toHaveLength(1);
  });

  it("raises an alert if the bill differs by more than 2 %, but not at exactly 2 %", async () => {
    const { orgId } = await openAccount();
    const provider = `host-${crypto.randomUUID().slice(0, 8)}`;
    // $98 of tokens that were read from or written to a cache
    const usage = { ...GENERATION.usage, input: 0, cacheRead: 9_000_000, cacheWrite: 4_000_000 };
    const bought = { input: 7, cached: 2_000_000, cacheWrite: 20_000_000, output: 0 };
    const hold = holdOf(10);
    valueOf(await stubOf(orgId).hold(hold));
    const generation = { ...GENERATION, provider, usage, bought };
    valueOf(await stubOf(orgId).settle({ id: hold.id, cost: micros(10), generation }));
    const day =
      (await marginBy("provider", orgId)).find(({ group }) => group === provider)?.day ?? "";
    const alertsFor = async (dollars: number): Promise<readonly unknown[]> => {
      const rows = [{ provider, day, dollars }];
      expect((await admin("POST", "/costs", { rows })).status).toBe(201);
      const lines: string[] = [];
      const spy = vi
        .spyOn(console, "error")
        .mockImplementation((line) => void lines.push(String(line)));
      const query = `from=${today}&to=${today}&by=provider`;
      const bindings = bindingsWith({ DB: databaseOf(orgId) });
      await send(`/admin/v1/margin?${query}`, { key: ADMIN_TOKEN, bindings });
      spy.mockRestore();
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      return entries.filter((one) => one["provider"] === provider);
    };
    const alert = { event: "alert", alert: "provider_bill_differs", provider, day };
    const counted_micro = 98_000_000;
    expect(await alertsFor(100)).toEqual([]);
    expect(await alertsFor(100.000001)).toEqual([
      { ...alert, billed_micro: 100_000_001, counted_micro },
    ]);
    expect(await alertsFor(96.04)).toEqual([]);
    expect(await alertsFor(96.039999)).toEqual([
      { ...alert, billed_micro: 96_039_999, counted_micro },
    ]);
  });

  it("returns 201 and replaces an earlier import of the same day", async () => {
    const provider = `host-${crypto.randomUUID().slice(0, 8)}`;
    await admin("POST", "/costs", { rows: [{ provider, day: today, dollars: 9 }] });
    const rows = [{ provider, day: today, dollars: 1.5 }];
    const response = await admin("POST", "/costs", { rows });
    expect([response.status, await response.json()]).toEqual([201, { imported: 1 }]);
    const kept = await env.DB.prepare("SELECT billed_micro FROM provider_bills WHERE provider = ?")
      .bind(provider)
      .first();
    expect(kept).toEqual({ billed_micro: 1_500_000 });
  });

  it("returns 400 for negative dollars, an invalid day and an empty provider", async () => {
    for (const wrong of [{ dollars: -1 }, { day: "yesterday" }, { provider: "" }]) {
      const response = await admin("POST", "/costs", {
        rows: [{ provider: "openai", day: today, dollars: 1, ...wrong }],
      });
      expect(response.status).toBe(400);
    }
  });
});

describe("POST /admin/v1/rerate", () => {
  const span = {
    from: new Date(Date.now() - HOURS_MS).toISOString(),
    to: new Date(Date.now() + HOURS_MS).toISOString(),
  };

  it("returns in a dry run how much each customer would save at a lower price", async () => {
    const account = await openAccount();
    for (let i = 0; i < 4; i++) {
      await (
        await chat(account.key, { messages: [{ role: "user", content: "x".repeat(i * 40) }] })
      ).text();
    }
    const receipts = await receiptsOf(account);
    const dollars = fc.integer({ min: 1, max: 3_000_000 }).map((each) => each / 1_000_000);
    await fc.assert(
      fc.asyncProperty(dollars, dollars, async (input, output) => {
        const body = { id: "dry", organization: account.orgId, model: "sandbox/echo", ...span };
        const response = await admin("POST", "/rerate", { ...body, price: { input, output } });
        const report = await response.json<{ total_micro: number }>();
        const [perInput, perOutput] = [input, output].map((one) =>
          BigInt(Math.round(one * 1_000_000)),
        );
        const less = receipts.map(
          ({ cost_micro: cost, prompt_tokens: p, completion_tokens: c }) => {
            const sum = BigInt(p) * (perInput ?? 0n) + BigInt(c) * (perOutput ?? 0n);
            return Math.max(0, cost - Number((sum + 999_999n) / 1_000_000n));
          },
        );
        expect(report.total_micro).toBe(less.reduce((total, one) => total + one, 0));
      }),
      { numRuns: effortFor(10, 250) },
    );
    const balance = await send("/v1/balance", { key: account.key });
    const paid = receipts.reduce((sum, { cost_micro: cost }) => sum + cost, 0);
    expect(await balance.json()).toMatchObject({ credits_micro: 1_000_000_000 - paid });
  });

  it("credits each organization once per correction ID, and ignores open requests", async () => {
    const account = await openAccount();
    await (await chat(account.key)).text();
    const [receipt] = await receiptsOf(account);
    const price = { input: 0.5, output: 1 };
    const id = `slip-${crypto.randomUUID().slice(0, 8)}`;
    const body = {
      id,
      organization: await slugOf(account),
      model: "sandbox/echo",
      price,
      dry_run: false,
    };
    const early = await admin("POST", "/rerate", { ...body, ...span });
    expect(early.status).toBe(400);
    // Moves the request's clock by three hours.
    const later = { ...env, CLOCK_OFFSET_MS: String(3 * HOURS_MS) } as unknown as Env;
    const request = { method: "POST", key: env.ADMIN_TOKEN, body: { ...body, ...span } };
    const again = () => send("/admin/v1/rerate", { ...request, bindings: later });
    const answers = await Promise.all([again(), again(), again()]);
    for (const answer of answers) {
      const { organizations } = await answer.json<{ organizations: { credit_micro: number }[] }>();
      expect(organizations[0]?.credit_micro).toBe(Math.floor((receipt?.cost_micro ?? 0) / 2));
    }
    const balance = await send("/v1/balance", { key: account.key });
    const left = 1_000_000_000 - Math.ceil((receipt?.cost_micro ?? 0) / 2);
    expect(await balance.json()).toMatchObject({ credits_micro: left });
  });
});
