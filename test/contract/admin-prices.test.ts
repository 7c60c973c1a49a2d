import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN, admin, chat, openAccount, send } from "./client.ts";
import { callFromPage, login } from "./console-client.ts";

const HOUR_MS = 3_600_000;
const later = (ms = 2 * HOUR_MS): string => new Date(Date.now() + ms).toISOString();
const ROW = { list: "partners", item: "sandbox/echo", price: { input: 3, output: 5 } };

let minute = 0;
/** Returns a time that no other price row of these tests has. */
const uniqueTime = (): string => later((300 + minute++) * 60_000);

const post = (rows: readonly object[]): Promise<Response> => admin("POST", "/prices", { rows });
const postRow = async (row: object = {}): Promise<{ id: string; from: string }> => {
  const response = await post([{ ...ROW, from: uniqueTime(), ...row }]);
  expect(response.status).toBe(201);
  const { prices } = await response.json<{ prices: { id: string; from: string }[] }>();
  return prices[0] ?? { id: "", from: "" };
};
/** Creates a price row in force, as if it had been posted before the lead time. */
const insertActivePrice = (list: string, item: string, terms: object): Promise<unknown> =>
  env.DB.prepare(
    `INSERT INTO prices (id, list, item, from_at, price, percent, posted_by, created_at)
     VALUES (?, ?, ?, ?, ?, ?, 'test', 0)`,
  )
    .bind(`prc_${crypto.randomUUID()}`, list, item, Date.now() - HOUR_MS, ...priceColumns(terms))
    .run();
const priceColumns = (terms: { price?: object; percent?: number }): (string | number | null)[] => [
  terms.price === undefined ? null : JSON.stringify(terms.price),
  terms.percent ?? null,
];
const errorOf = async (
  response: Response,
): Promise<{ code: string; param: string; message: string }> => {
  const { error } = await response.json<{
    error: { code: string; param: string; message: string };
  }>();
  return error;
};

describe("POST /admin/v1/prices", () => {
  it("returns 201 with the stored prices, and adds nothing for a repeated call", async () => {
    const row = { ...ROW, from: uniqueTime() };
    const first = await (await post([row])).json<{ prices: object[] }>();
    expect(first.prices).toEqual([
      {
        ...ROW,
        id: expect.stringMatching(/^prc_/),
        from: row.from,
        price: { input: 3, cached: 3, cache_write: 3, output: 5 },
        percent: null,
        posted_by: "admin",
        created_at: expect.any(String),
      },
    ]);
    expect(await (await post([row])).json()).toEqual(first);
    const other = await post([{ ...row, price: { input: 4, output: 5 } }]);
    expect(other.status).toBe(409);
    expect(await errorOf(other)).toMatchObject({ code: "price_exists", param: "rows[0].from" });
  });

  it.each([
    ["a price of 0", { price: { input: 0, output: 1 } }, "rows[1].price.input"],
    ["an output of 0", { price: { input: 1, output: 0 } }, "rows[1].price.output"],
    ["no output price of a chat model", { price: { input: 1 } }, "rows[1].price.output"],
    [
      "an image price of a chat model",
      { price: { input: 1, output: 1, image: 1 } },
      "rows[1].price.image",
    ],
    [
      "a price per second of a chat model",
      { price: { input: 1, output: 1, second: 1 } },
      "rows[1].price.second",
    ],
    [
      "a price per character of an embeddings model",
      { item: "sandbox/embed", price: { input: 1, character: 1 } },
      "rows[1].price.character",
    ],
    [
      "an output price of a model without output",
      { item: "sandbox/embed" },
      "rows[1].price.output",
    ],
    [
      "a price with seven decimals",
      { price: { input: 0.0000001, output: 1 } },
      "rows[1].price.input",
    ],
    ["a percentage below 0", { price: undefined, percent: -1 }, "rows[1].percent"],
    ["a fraction of a percent", { price: undefined, percent: 0.5 }, "rows[1].percent"],
    ["a price and a percentage", { percent: 1 }, "rows[1].price"],
    ["neither", { price: undefined }, "rows[1].price"],
    ["a day in the past", { from: "2020-01-01" }, "rows[1].from"],
    ["a time before the minimum lead time", { from: later(HOUR_MS - 30_000) }, "rows[1].from"],
    ["no time", { from: "soon" }, "rows[1].from"],
    ["an unknown model", { item: "nobody/knows" }, "rows[1].item"],
    ["an unknown author", { item: "nobody/*", price: undefined, percent: 1 }, "rows[1].item"],
    ["an alias", { item: "cheap" }, "rows[1].item"],
    ["a price for all models", { item: "*" }, "rows[1].price"],
    ["a price for an author", { item: "sandbox/*" }, "rows[1].price"],
    ["a list without a name", { list: "" }, "rows[1].list"],
    ["a list with an invalid name", { list: "Our Best" }, "rows[1].list"],
  ])("returns 400 with the param for %s, and adds no price", async (_what, wrong, param) => {
    const valid = { ...ROW, from: uniqueTime() };
    const response = await post([valid, { ...ROW, from: uniqueTime(), ...wrong }]);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param });
    const found = await env.DB.prepare("SELECT 1 FROM prices WHERE from_at = ?")
      .bind(Date.parse(valid.from))
      .first();
    expect(found).toBeNull();
  });

  it.each(["2020-01-01", new Date(Date.now() + 60_000).toISOString()])(
    "returns the earliest allowed start if the start %s is rejected",
    async (from) => {
      const { message } = await errorOf(await post([{ ...ROW, from }]));
      const [, earliest = ""] = /at least 3600 s in the future: (\S+) or later/.exec(message) ?? [];
      expect(Date.parse(earliest) - Date.now()).toBeGreaterThan(HOUR_MS - 10_000);
    },
  );
});

describe("DELETE /admin/v1/prices/{price_id}", () => {
  it("deletes a price that takes effect later, and returns 404 for a second call", async () => {
    const { id } = await postRow();
    const gone = await admin("DELETE", `/prices/${id}`);
    expect(await gone.json()).toEqual({ id, deleted: true });
    expect((await admin("DELETE", `/prices/${id}`)).status).toBe(404);
  });

  it("returns 409 for a price in effect and for the last price of a customer's price list", async () => {
    await insertActivePrice("begun", "*", { percent: 3 });
    const row = await env.DB.prepare("SELECT id FROM prices WHERE list = 'begun'").first<{
      id: string;
    }>();
    const inForce = await admin("DELETE", `/prices/${row?.id}`);
    expect([inForce.status, (await errorOf(inForce)).code]).toEqual([409, "price_in_force"]);
    const { id } = await postRow({ list: "only-one" });
    const { orgId } = await openAccount();
    await admin("PATCH", `/orgs/${orgId}`, { price_list: "only-one" });
    const used = await admin("DELETE", `/prices/${id}`);
    expect([used.status, (await errorOf(used)).code]).toEqual([409, "price_list_in_use"]);
    await admin("PATCH", `/orgs/${orgId}`, { price_list: null });
    expect((await admin("DELETE", `/prices/${id}`)).status).toBe(200);
  });
});

describe("PATCH /admin/v1/orgs/{id} with a price_list", () => {
  it("returns 400 for an unknown price list and for the region's default price list", async () => {
    const { orgId } = await openAccount();
    for (const price_list of ["nobody-posted", "default", "NO LIST"]) {
      const response = await admin("PATCH", `/orgs/${orgId}`, { price_list });
      expect([response.status, (await errorOf(response)).param]).toEqual([400, "price_list"]);
    }
  });

  it("applies the price list to the organization's next charge, receipt and model list", async () => {
    await insertActivePrice("half", "sandbox/echo", {
      price: { input: 500_000, output: 1_000_000 },
    });
    await insertActivePrice("half", "*", { percent: 50 });
    const { orgId, key } = await openAccount();
    const receiptOf = async (response: Response): Promise<Record<string, unknown>> => {
      await response.text();
      const id = response.headers.get("x-request-id") ?? "";
      return (await send(`/v1/generations/${id}`, { key })).json<Record<string, unknown>>();
    };
    const before = await receiptOf(await chat(key));
    expect(before).toMatchObject({ price: { input: 1_000_000 }, price_list: null });
    const updated = await admin("PATCH", `/orgs/${orgId}`, { price_list: "half" });
    expect(await updated.json()).toMatchObject({ price_list: "half" });
    const response = await chat(key);
    const after = await receiptOf(response);
    expect(after).toMatchObject({
      price: { input: 500_000, output: 1_000_000 },
      price_list: "half",
    });
    expect(Date.parse(String(after["price_from"]))).toBeLessThan(Date.now());
    expect(after["cost_micro"]).toBe(Number(response.headers.get("x-cost-micro")));
    const model = await send("/v1/models/sandbox/echo", { key });
    expect(await model.json()).toMatchObject({
      pricing: { prompt: "0.0000005" },
      next_price: null,
    });
    const embed = await send("/v1/models/sandbox/embed", { key });
    expect(await embed.json()).toMatchObject({ pricing: { prompt: "0.0000015" } });
    await admin("PATCH", `/orgs/${orgId}`, { price_list: null });
    expect(await receiptOf(await chat(key))).toMatchObject({ price_list: null });
  });

  it("shows the next price and its start date in GET /v1/models and in the console", async () => {
    const { from } = await postRow({ list: "soon-dearer", price: { input: 9, output: 11 } });
    const { orgId, key } = await openAccount();
    await admin("PATCH", `/orgs/${orgId}`, { price_list: "soon-dearer" });
    const path = "/v1/models/sandbox/echo";
    const operator = await login(ADMIN_TOKEN);
    await callFromPage("/as", operator, { method: "POST", body: { org: orgId } });
    for (const model of [
      await send(path, { key }),
      await callFromPage(path, await login(key)),
      await callFromPage(path, operator),
    ]) {
      expect(await model.json()).toMatchObject({
        pricing: { prompt: "0.000001", completion: "0.000002" },
        next_price: { from, prompt: "0.000009", completion: "0.000011" },
      });
    }
  });
});

it("POST /admin/v1/prices sets prices for cache reads and writes, which appear in charges and receipts", async () => {
  const price = { input: 3, cached: 0.300001, cache_write: 3.75, output: 15 };
  const row = { list: "cached", item: "sandbox/echo", price, from: uniqueTime() };
  expect((await post([row])).status).toBe(201);
  const listed = await (await admin("GET", "/prices?list=cached")).json<{ prices: object[] }>();
  expect(listed.prices).toMatchObject([row]);
  await env.DB.prepare("UPDATE prices SET from_at = ? WHERE list = 'cached'")
    .bind(Date.now() - HOUR_MS)
    .run();
  const { orgId, key } = await openAccount();
  await admin("PATCH", `/orgs/${orgId}`, { price_list: "cached" });
  const response = await chat(key);
  await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  expect(await (await send(`/v1/generations/${id}`, { key })).json()).toMatchObject({
    price: { input: 3_000_000, cached: 300_001, cache_write: 3_750_000, output: 15_000_000 },
  });
});

it("GET /admin/v1/prices returns every price in pages, ordered by list, item and date", async () => {
  for (let i = 0; i < 3; i++) await postRow({ list: "paged" });
  const seen: string[] = [];
  for (let after = ""; ;) {
    const path = `/prices?list=paged&limit=2${after === "" ? "" : `&after=${after}`}`;
    const page = await (
      await admin("GET", path)
    ).json<{ prices: { id: string }[]; next_after?: string }>();
    seen.push(...page.prices.map(({ id }) => id));
    if (page.next_after === undefined) break;
    after = page.next_after;
  }
  expect([seen.length, new Set(seen).size]).toEqual([3, 3]);
});

it("a paid request uses cached price lists if the database fails, and returns 503 if no copy is cached", async () => {
  const { key } = await openAccount();
  const bindings = {
    ...env,
    DB: {
      prepare: () => {
        throw new Error("D1 is away");
      },
    },
  } as unknown as Env;
  // The isolate uses the price list that an earlier isolate copied. Without a copy, it sells
  // nothing.
  const { key: other } = await openAccount();
  await (await chat(other)).text();
  expect((await chat(other, {}, { bindings: { ...bindings } })).status).toBe(200);
  vi.spyOn(caches.default, "match").mockResolvedValue(undefined);
  const response = await chat(key, {}, { bindings });
  expect([response.status, (await errorOf(response)).code]).toEqual([503, "prices_unavailable"]);
  const balance = await send("/v1/balance", { key });
  expect(await balance.json()).toMatchObject({ credits_micro: 1_000_000_000 });
});
