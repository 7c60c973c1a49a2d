import { beforeAll, describe, expect, it } from "vitest";
import { createKey, postCredits, postMember } from "../../scripts/admin-client.ts";
import {
  formatBalance,
  dollarsToMicros,
  formatCharge,
} from "../../src/console/browser/lib/money.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { logIn, openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";
import { collectResponses, pageDrawn, rowsOf, unmatchedAmounts } from "./displayed-data.ts";
import type { Json, Responses } from "./displayed-data.ts";

/** Compares what pages show with the responses that they received. */
const browser = openWindow();
const admin = () => ({ url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN });
let owner: { readonly orgId: string; readonly key: string };

/** The largest and the smallest amount that the console must show: $250,000 and $0.000001. */
const LARGE = 250_000_000_000;

beforeAll(async () => {
  owner = await makeOrganization(admin().url, ADMIN_TOKEN, { rpmLimit: 1000, credits: LARGE });
  await postCredits(admin(), owner.orgId, { amount_micro: -1, reference: "correction" });
  await postCredits(admin(), owner.orgId, { amount_micro: 1, reference: "the smallest" });
  const { id: memberId } = await postMember(admin(), owner.orgId, {
    email: "member@example.com",
    role: "member",
  });
  const terms = { orgId: owner.orgId, memberId, scope: "regional", rpmLimit: 100 } as const;
  const ended = await createKey(admin(), { ...terms, name: "Ended key" });
  await post("chat/completions", hello("ended"), ended);
  const { keys } = (await (await call("GET", "keys")).json()) as { keys: Listed[] };
  const endedId = keys.find(({ name }) => name === "Ended key")?.id ?? "";
  expect((await call("DELETE", `keys/${endedId}`)).status).toBe(200);
  await createKey(admin(), { ...terms, name: "Unused key" });
  const second = { email: "owner@example.com", role: "owner" } as const;
  const { id: ownerId } = await postMember(admin(), owner.orgId, second);
  const ofOwner = { ...terms, memberId: ownerId, rpmLimit: 1000 };
  for (const name of ["Second", "Third", "Fourth"]) {
    ownersKeys.push(await createKey(admin(), { ...ofOwner, name }));
  }
  ownersKeys.push(owner.key);
  await post("users", { external_id: "quota", daily_quota_dollars: 0.000_001 });
  await post("users", { external_id: "rich", monthly_quota_dollars: 250_000 });
  for (const user of ["ann", "rich", "<b>bob</b>"]) await post("chat/completions", hello(user));
  await post("chat/completions", { ...hello("ann"), model: "nope/none" }); // rejected
  await post("chat/completions", hello("quota")); // over its quota
  await makeOrganization(admin().url, ADMIN_TOKEN, { credits: 0 });
});

type Listed = { readonly id: string; readonly name: string };
const hello = (user: string) => ({
  model: "sandbox/echo",
  user,
  messages: [{ role: "user", content: `Hello from ${user}` }],
});

function call(method: string, at: string, body?: object, key = owner.key): Promise<Response> {
  return fetch(`${browser.origin}/v1/${at}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}
const post = (at: string, body: object, key?: string) => call("POST", at, body, key);

/** The owner's keys, which are used in turn, because a key's sessions have a limit per minute. */
const ownersKeys: string[] = [];
let logins = 0;

async function opened(secret: string, at: string): Promise<[WatchedPage, Responses]> {
  const key = ownersKeys[logins++ % ownersKeys.length] ?? secret;
  const page = await logIn(browser, secret === owner.key ? key : secret);
  const responses = collectResponses(page);
  await page.goto(`/console/#/${at}`);
  await page.reload();
  await pageDrawn(page);
  return [page, responses];
}

const OWNERS = [
  "",
  "activity",
  "requests",
  "keys",
  "keys?all=1",
  "end-users",
  "models",
  "credits",
  "events",
  "settings",
  "exports",
  "connect",
  "playground",
  "activity?split=key&metric=errors",
  "requests?status=error",
];
const OPERATORS = [
  "organizations",
  "payments",
  "acts",
  "business?range=1",
  "business?tab=Prices",
  "catalog",
  "health",
];

const TABS = ["Money and people", "Prices", "Access", "Webhooks", "Recovery"];

describe("the console", () => {
  it.each(OWNERS)("shows the API's amounts and times to an owner: %s", async (at) => {
    const [page, responses] = await opened(owner.key, at);
    expect(responses.size).toBeGreaterThan(0);
    expect(await unmatchedAmounts(page, responses)).toEqual([]);
    expect(page.faults).toEqual([]);
  });

  it.each(OPERATORS)("shows the API's amounts and times to an operator: %s", async (at) => {
    const [page, responses] = await opened(ADMIN_TOKEN, at);
    expect(await unmatchedAmounts(page, responses)).toEqual([]);
    expect(page.faults).toEqual([]);
  });

  it.each(TABS)("shows the API's amounts and times on a customer's tab %s", async (tab) => {
    const at = `organizations/${owner.orgId}?tab=${tab}`;
    const [page, responses] = await opened(ADMIN_TOKEN, at);
    expect(responses.size).toBeGreaterThan(0);
    expect(await unmatchedAmounts(page, responses)).toEqual([]);
    expect(page.faults).toEqual([]);
  });

  it.each(["requests", "keys", "end-users", "events"])(
    "shows the API's amounts and times for one row of the page %s",
    async (list) => {
      const [page, responses] = await opened(owner.key, list);
      await page.getByRole("row").nth(1).click();
      await page.getByRole("dialog").waitFor();
      await pageDrawn(page);
      expect(await unmatchedAmounts(page, responses)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
  );

  it("shows the API's amounts and times for webhooks, one webhook and the webhook's deliveries", async () => {
    const url = "https://hooks.example.com/turnpike";
    const created = await post("webhooks", { url });
    expect(created.status).toBe(201);
    const { id } = (await created.json()) as { id: string };
    for (const at of ["events?tab=Webhooks", `events/${id}?tab=Webhooks`]) {
      const [page, responses] = await opened(owner.key, at);
      expect(await unmatchedAmounts(page, responses)).toEqual([]);
      expect(await page.locator("main").innerText()).toContain(url);
    }
  });

  it("shows the API's amounts and times to a limited key", async () => {
    const created = await post("keys", {
      name: "Limited",
      budget_dollars: 0.5,
      budget_period: "day",
    });
    const [page, responses] = await opened(((await created.json()) as { key: string }).key, "");
    expect(responses.size).toBeGreaterThan(0);
    expect(await unmatchedAmounts(page, responses)).toEqual([]);
    expect(await page.locator("main").innerText()).toContain("$0.50");
  });
});

describe("the console with data from the API", () => {
  it("shows requests with status, model, cost and end user", async () => {
    const [page, responses] = await opened(owner.key, "requests");
    // The chart also reads the failed requests.
    const listed = [...responses].filter(([at]) => !at.includes("status=failed"));
    const rows = rowsOf(new Map(listed), "generations");
    expect(rows.length).toBeGreaterThanOrEqual(6);
    const shown = await page.getByRole("region", { name: "Requests" }).locator("tbody tr").all();
    expect(shown).toHaveLength(rows.length);
    for (const [i, row] of rows.entries()) {
      const text = (await shown[i]?.innerText()) ?? "";
      expect(text).toContain(formatCharge(Number(row["cost_micro"])));
      expect(text).toContain(String(row["external_id"] ?? ""));
      const code = (row["error"] as Json | null)?.["code"];
      expect(text).toContain(code === undefined ? "Succeeded" : String(code));
      if (code !== undefined) expect(text).not.toContain("Succeeded");
    }
  });

  it("shows all keys, including revoked keys", async () => {
    const [page, responses] = await opened(owner.key, "keys?all=1");
    const keys = rowsOf(responses, "keys");
    expect(keys.map(({ name }) => name)).toEqual(expect.arrayContaining(["Ended key"]));
    const text = await page.locator("main table").innerText();
    for (const { name } of keys) expect(text).toContain(String(name));
    expect(text).toContain("revoked");
  });

  it("shows end users with spend and quotas", async () => {
    const [page, responses] = await opened(owner.key, "end-users");
    const users = rowsOf(responses, "users");
    expect(users.length).toBeGreaterThanOrEqual(4);
    for (const user of users) {
      const row = page.getByRole("row").filter({ hasText: String(user["external_id"]) });
      const text = await row.innerText();
      for (const field of ["daily_quota_dollars", "monthly_quota_dollars"]) {
        const quota = user[field];
        if (quota !== null) expect(text).toContain(formatBalance(dollarsToMicros(Number(quota))));
      }
    }
  });

  it("shows the balance and the failures by error code on the overview", async () => {
    const [page, responses] = await opened(owner.key, "");
    const json = (at: RegExp): Json =>
      ([...responses].find(([address]) => at.test(address))?.[1] ?? {}) as Json;
    const text = await page.locator("main").innerText();
    expect(text).toContain(formatBalance(Number(json(/\/balance/)["available_micro"])));
    const errors = json(/\/errors/) as { total: number; data: { count: number; group: string }[] };
    expect(errors.total).toBeGreaterThanOrEqual(2);
    expect(errors.data.reduce((sum, { count }) => sum + count, 0)).toBe(errors.total);
    for (const { count, group } of errors.data) expect(text).toContain(`${count} ${group}`);
  });

  it("shows each day's balance, computed from the ledger", async () => {
    const [page, responses] = await opened(owner.key, "credits");
    await page.getByRole("button", { name: "View as table" }).click();
    const balance = [...responses].find(([at]) => at.endsWith("/balance"))?.[1] as Json;
    const newest = page.getByRole("region", { name: "Balance by day" }).getByRole("row").nth(1);
    await newest.getByText(formatBalance(Number(balance["credits_micro"]))).waitFor();
    const charged = rowsOf(responses, "data").reduce(
      (sum, row) => sum + Number(row["cost_micro"] ?? 0),
      0,
    );
    expect(charged).toBe(LARGE - Number(balance["credits_micro"]));
    await page
      .getByText(/Lasts .* if you spend as (?:today|in the last \d days) \(\$0\.\d+ a day\)/)
      .waitFor();
  });

  it("shows the margin as unknown if the cost of a request is unknown", async () => {
    const page = await logIn(browser, ADMIN_TOKEN);
    const row = { day: "2026-11-27", billed_micro: null, difference_micro: null };
    const known = { requests: 8, charged_micro: 40, bought_micro: 30, unknown_requests: 0 };
    const unknown = { requests: 524, charged_micro: LARGE, bought_micro: 0, unknown_requests: 524 };
    const data = [
      { ...row, ...known, group: "known", margin_micro: 10 },
      { ...row, ...known, day: "2026-11-26", group: "known", margin_micro: 10, billed_micro: 50 },
      { ...row, ...unknown, group: "without a price", margin_micro: LARGE },
    ];
    await page.route("**/admin/v1/margin?*", (route) =>
      route.fulfill({ json: { data, complete_from: "2026-01-01T00:00:00.000Z", missing: [] } }),
    );
    await page.goto("/console/#/business?range=1");
    await page.getByText(/margin is unknown: 524 of 540 requests/).waitFor();
    const text = await page.getByRole("row", { name: /without a price/ }).innerText();
    expect(text.match(/Unknown/g)).toHaveLength(2);
    const whole = page.getByRole("row", { name: /^known/ });
    expect(await whole.innerText()).toMatch(/^known\s+16\s.*\$0\.00002\s.*\$0\.00005/s);
    await page.getByLabel("Rows").selectOption("each day");
    expect(await page.getByRole("row", { name: /2026-11-27 known/ }).innerText()).toContain(
      "$0.00001",
    );
    expect(await page.locator("main").innerText()).not.toContain(">99%");
  });

  it("shows models with their prices and status", async () => {
    const [page, responses] = await opened(owner.key, "models");
    const lines = (await page.locator("main table").innerText()).split("\n");
    const models = rowsOf(responses, "data").filter(({ object }) => object === "model");
    expect(models.length).toBeGreaterThan(0);
    for (const { id, status } of models) {
      expect(lines.find((line) => line.startsWith(`${String(id)} `))).toContain(String(status));
    }
  });

  it("names the failing providers of a degraded model", async () => {
    const page = await logIn(browser, owner.key);
    await page.route(/\/v1\/models(?:\/.*\/endpoints)?$/, async (route) => {
      const response = await route.fetch();
      const text = await response.text();
      const isList = route.request().url().endsWith("/models");
      const body = isList
        ? text.replaceAll('"operational"', '"degraded"')
        : text.replaceAll('"status":0', '"status":-1');
      await route.fulfill({ response, body });
    });
    await page.goto("/console/#/models");
    await page.getByRole("row", { name: /^sandbox\/echo .*degraded sandbox/ }).waitFor();
  });

  it("shows no state of providers that weren't called", async () => {
    const page = await logIn(browser, ADMIN_TOKEN);
    await page.route("**/admin/v1/providers", async (route) => {
      const response = await route.fetch();
      const figures = (await response.json()) as object;
      await route.fulfill({ response, json: { ...figures, data: [] } });
    });
    await page.goto("/console/#/health");
    await page.reload();
    await page.getByText("No provider calls in this period.").waitFor();
    await page.getByText("No problems in the region").waitFor();
    expect(await page.getByText("All systems operational").count()).toBe(0);
  });

  it("shows providers with calls, failures and affected customers", async () => {
    const data = [
      {
        provider: "openai",
        calls: 12_345,
        failed: 1234,
        error_rate: 0.1,
        reasons: { "500": 1200, timeout: 34 },
        affected_organizations: 1,
        most_affected: [{ id: owner.orgId, slug: "the-slug", failed: 1234 }],
      },
    ];
    const page = await logIn(browser, ADMIN_TOKEN);
    await page.route("**/admin/v1/providers", (route) =>
      route.fulfill({
        json: {
          complete_from: "2026-01-01T00:00:00.000Z",
          data,
          active_organizations: 7,
          asked_organizations: 5,
          missing: ["lost"],
        },
      }),
    );
    await page.goto("/console/#/health");
    await page.reload();
    const row = page.getByRole("row", { name: /^openai/ });
    await row.waitFor();
    expect(await row.innerText()).toMatch(
      /10\.00%\s+12,345\s+1,234\s+1 the-slug\s+1200 × status 500, 34 × timeout/,
    );
    await page
      .getByText(
        "▲ Provider openai fails: 1,234 of 12,345 calls (10%) in 60 minutes, 1 customer affected.",
      )
      .waitFor();
    expect(await page.getByText("All systems operational").count()).toBe(0);
    await page.getByText("From 4 of 7 active customers.").waitFor();
  });

  it("shows routes in cooldown, but not routes that are being retried", async () => {
    const page = await logIn(browser, ADMIN_TOKEN);
    await page.route("**/admin/v1/health", async (route) => {
      const response = await route.fetch();
      const health = (await response.json()) as object;
      const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
      const breakers = [
        { route: "openai:resting", state: "disabled", until: at(600_000) },
        { route: "openai:rejected", state: "disabled", until: at(-60_000) },
        // The browser's clock can be ahead.
        { route: "openai:failing", state: "open", until: at(-60_000) },
        { route: "openai:ended", state: "half_open", until: at(-180_000) },
      ];
      const peer = { answers: true, rtt_ms: 80, last_ok_at: at(0) };
      const peers = [{ region: "us", url: "https://us.example", ...peer }];
      await route.fulfill({ response, json: { ...health, breakers, peers } });
    });
    await page.goto("/console/#/health");
    await page.reload();
    for (const route of ["openai:resting", "openai:rejected"]) {
      await page.getByText(`▲ Route ${route} rejects our key or the model's name.`).waitFor();
    }
    await page.getByText("▲ Route openai:failing failed too often.").waitFor();
    expect(await page.locator("main").innerText()).not.toContain("openai:ended");
    const link = page.getByRole("link", { name: "Open the US console" });
    expect(await link.getAttribute("href")).toBe("https://us.example/console/#/health");
    const titles = await page.locator("main h2").allTextContents();
    expect(titles.slice(0, 4)).toEqual([
      "Problems",
      "Providers, last 60 minutes",
      "Providers in cooldown",
      "Other regions",
    ]);
  });

  it("shows an operator the names of all organizations", async () => {
    const [page, responses] = await opened(ADMIN_TOKEN, "organizations");
    const text = await page.locator("main table").innerText();
    for (const { name } of rowsOf(responses, "organizations")) expect(text).toContain(String(name));
  });
});
