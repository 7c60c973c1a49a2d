import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account, sumOf } from "./support/account.ts";
import { startPersistentRegion, startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const HELLO = [{ role: "user" as const, content: "Hello from far away" }];

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(async () => regions.stop());

/** Creates an EU organization with a global key. */
const open = (rpmLimit = 1000): Promise<Account> =>
  Account.open(() => regions.eu, { keyScope: "global", rpmLimit });

/** Sends a request to the US with an account's key. */
function inUs(account: Account, path: string, init: { method?: string; body?: object } = {}) {
  const { method = init.body === undefined ? "GET" : "POST", body } = init;
  return fetch(`${regions.us.baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${account.key}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Returns the files below a folder that contain a text. */
function filesWith(directory: string, text: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));
}

/** Removes last uses, which can change between two responses. */
const still = (text = ""): string => text.replaceAll(/"last_used_at":("[^"]*"|null)/g, "");

/** Returns both regions' responses to the same request, without the parts that name the region. */
async function both(account: Account, path: string) {
  const answers = await Promise.all([account.call(path), inUs(account, path)]);
  return Promise.all(
    answers.map(async (answer) => ({ status: answer.status, body: await answer.text() })),
  );
}

describe("a global key in the other region", () => {
  it("completes, streams and embeds through the SDK, and pays the exact price from the home region's balance", async () => {
    const account = await open();
    const client = new OpenAI({ apiKey: account.key, baseURL: regions.us.baseUrl, maxRetries: 0 });
    const json = await client.chat.completions
      .create({ model: "sandbox/echo", messages: HELLO })
      .asResponse();
    const jsonCost = Number(json.headers.get("x-cost-micro"));
    expect(jsonCost).toBeGreaterThan(0);
    const stream = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: HELLO,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const usage = chunks.at(-1)?.usage as { cost_micro?: number } | undefined;
    const embedded = await client.embeddings
      .create({ model: "sandbox/embed", input: "Hello" })
      .asResponse();
    const cost =
      jsonCost + (usage?.cost_micro ?? NaN) + Number(embedded.headers.get("x-cost-micro"));
    const answered = await inUs(account, "/balance"); // delivers pending US messages first
    expect(await answered.json()).toMatchObject({ credits_micro: 1_000_000 - cost });
    expect(await account.balance()).toBe(1_000_000 - cost);
    const rows = await account.ledger();
    expect(sumOf(rows)).toBe(1_000_000 - cost);
    expect(rows.filter((row) => row.kind === "usage")).toHaveLength(3);
    expect(await account.fullBalance()).toMatchObject({ open_holds: 0, held_micro: 0 });
  });

  it("stores a request's serving region, key and end user in the home region", async () => {
    const account = await open();
    const answer = await inUs(account, "/chat/completions", {
      body: { model: "sandbox/echo", messages: HELLO, user: "far-ann" },
    });
    const id = answer.headers.get("x-request-id") ?? "";
    assert.equal(answer.status, 200);
    const generation = (await (await inUs(account, `/generations/${id}`)).json()) as object;
    expect(generation).toMatchObject({ id, region: "us", external_id: "far-ann", streamed: false });
    expect(await (await account.call(`/generations/${id}`)).json()).toEqual(generation);
    const user = (await (await account.call("/users/far-ann")).json()) as {
      daily_spend_dollars: number;
    };
    expect(user.daily_spend_dollars * 1_000_000).toBeCloseTo(
      Number(answer.headers.get("x-cost-micro")),
    );
    expect(filesWith(regions.eu.directory, "far-ann")).not.toEqual([]);
    expect(filesWith(regions.us.directory, "far-ann")).toEqual([]); // not even in deleted rows
  });

  it.each(["/balance", "/keys", "/users", "/usage", "/alerts", "/users/nobody", "/nothing"])(
    "gets the home region's response for %s",
    async (path) => {
      const account = await open();
      const [home, away] = await both(account, path);
      expect({ ...away, body: still(away?.body) }).toEqual({ ...home, body: still(home?.body) });
    },
  );

  it("creates an end user and creates and revokes a key in the home region", async () => {
    const account = await open();
    const created = await inUs(account, "/users", {
      body: { external_id: "a/b %41 ü", daily_quota_dollars: 8.2 },
    });
    expect(created.status).toBe(201);
    const path = `/users/${encodeURIComponent("a/b %41 ü")}`;
    expect(await (await account.call(path)).json()).toMatchObject({ daily_quota_dollars: 8.2 });
    const changed = await inUs(account, path, {
      method: "PATCH",
      body: { daily_quota_dollars: -1 },
    });
    expect(changed.status).toBe(400);
    expect(await changed.json()).toMatchObject({ error: { param: "daily_quota_dollars" } });
    const key = (await (
      await inUs(account, "/keys", { body: { name: "made away", scope: "global" } })
    ).json()) as { id: string; key: string };
    expect(key.key).toMatch(/^svc_sk_gbl_eu_live_/);
    const gone = await inUs(account, `/keys/${key.id}`, { method: "DELETE" });
    expect(await gone.json()).toMatchObject({ id: key.id, revoked: true });
  });

  it("gets separate request IDs and rate limits in each region", async () => {
    const account = await open(3);
    for (const remaining of ["2", "1", "0"]) {
      const answers = [await account.call("/balance"), await inUs(account, "/balance")];
      for (const answer of answers) {
        expect(answer.status).toBe(200);
        expect(answer.headers.get("x-ratelimit-remaining-requests")).toBe(remaining);
      }
      expect(answers[0]?.headers.get("x-request-id")).not.toBe(
        answers[1]?.headers.get("x-request-id"),
      );
      expect(answers[1]?.headers.get("openai-organization")).toBe(account.orgId);
    }
    expect((await account.call("/balance")).status).toBe(429);
    expect((await inUs(account, "/balance")).status).toBe(429);
  });

  it("gets only one admission for 200 concurrent first requests if its limit is 1", async () => {
    const account = await open(1);
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => inUs(account, "/models").then((answer) => answer.status)),
    );
    expect(answers.filter((status) => status === 200)).toHaveLength(1);
    expect(answers.filter((status) => status === 429)).toHaveLength(199);
  });

  it("lists the models of the region that it calls", async () => {
    const account = await open();
    const answer = await inUs(account, "/models/sandbox/echo");
    expect([answer.status, await answer.json()]).toMatchObject([200, { id: "sandbox/echo" }]);
  });

  it("gets the home region's errors: 402 with integer amounts, and 429 for a quota", async () => {
    const poor = await Account.open(() => regions.eu, { keyScope: "global", credits: 0 });
    const body = { model: "sandbox/echo", messages: HELLO };
    const refused = await inUs(poor, "/chat/completions", { body });
    expect(refused.status).toBe(402);
    expect(await refused.json()).toMatchObject({ error: { balance_micro: 0 } });
    const account = await open();
    await inUs(account, "/users", { body: { external_id: "capped", monthly_quota_dollars: 0 } });
    const over = await inUs(account, "/chat/completions", { body: { ...body, user: "capped" } });
    expect([over.status, await over.json()]).toMatchObject([
      429,
      { error: { code: "end_user_quota_exceeded" } },
    ]);
  });
});

describe("a global key whose home region is unavailable", () => {
  it("gets 503 home_region_unreachable, never 401, for every call, while a regional key works", async () => {
    const alone = await startPersistentRegion(); // the EU, with no US region at the configured URL
    const { key } = await Account.open(() => regions.us, { keyScope: "global" });
    const { baseUrl: baseURL } = alone.region();
    const client = new OpenAI({ apiKey: key, baseURL, maxRetries: 0 });
    const chat = { model: "sandbox/echo", messages: HELLO };
    const calls = [
      () => client.models.list(),
      () => client.chat.completions.create(chat),
      () => client.chat.completions.create({ ...chat, stream: true }),
      () => client.get("/balance"),
      () => client.post("/users", { body: { external_id: "u" } }),
    ];
    const errors = await Promise.all(
      calls.map((call) =>
        Promise.resolve(call()).then(
          () => null,
          (error: unknown) => error,
        ),
      ),
    );
    for (const error of errors) {
      expect(error).toBeInstanceOf(APIError);
      expect(error).toMatchObject({
        status: 503,
        type: "api_error",
        code: "home_region_unreachable",
      });
    }
    const regional = await Account.open(alone.region);
    expect((await regional.chat(chat)).status).toBe(200);
    await alone.stop();
  });
});
