import { beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const COUNT = 100_000;
const HOSTILE = "<script>alert(1)</script>";
const LABEL = "API key or operator's token";
const browser = openWindow({ entry: "test/workers/crowded.ts" });
let empty: { readonly orgId: string; readonly memberId: string; readonly key: string };
const adminUrl = () => `${browser.origin}/admin/v1`;

beforeAll(async () => {
  empty = await makeOrganization(adminUrl(), ADMIN_TOKEN);
});

async function login(secret: string): Promise<WatchedPage> {
  const page = await browser.open("/console/");
  await page.getByLabel(LABEL).fill(secret);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return page;
}

/** Opens an address of the console, and waits until its data is loaded. */
async function show(page: WatchedPage, hash: string): Promise<void> {
  await page.goto(`/console/#/${hash}`);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => document.querySelector("main [aria-busy=true]") === null);
}

describe("the console for an organization with 100,000 end users", () => {
  it("pages through, searches and exports the end users without freezing or using too much memory", async () => {
    const { orgId, key } = await makeOrganization(adminUrl(), ADMIN_TOKEN);
    const filled = await fetch(`${browser.origin}/__test/crowd`, {
      method: "POST",
      body: JSON.stringify({ org_id: orgId, count: COUNT }),
    });
    expect(filled.status, await filled.text()).toBe(200);
    const page = await login(key);
    await page.evaluate(() => {
      const longest = { ms: 0 };
      Reflect.set(globalThis, "longest", longest);
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) longest.ms = Math.max(longest.ms, duration);
      }).observe({ entryTypes: ["longtask"] });
    });

    await page.goto("/console/#/end-users");
    await page.getByRole("cell", { name: "user_000001" }).waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51 to 100").waitFor();
    await page.getByLabel("End user ID").fill("user_099999");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "user_099999" }).waitFor();
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "CSV" }).click();
    await page.getByRole("button", { name: /\d00 rows, stop/ }).click();
    await page.getByRole("button", { name: "CSV" }).waitFor();

    await page.goto("/console/#/activity?split=user");
    await page.getByRole("cell", { name: "user_100000" }).first().waitFor();
    expect(await page.locator("main tbody tr").count()).toBeLessThanOrEqual(50);
    const longest = await page.evaluate(() => Reflect.get(globalThis, "longest") as { ms: number });
    expect(longest.ms).toBeLessThan(2000);
    const metrics = await page.context().newCDPSession(page);
    await metrics.send("Performance.enable");
    const { metrics: all } = await metrics.send("Performance.getMetrics");
    const heap = all.find(({ name }) => name === "JSHeapUsedSize")?.value ?? Infinity;
    expect(heap).toBeLessThan(256 * 1024 * 1024);
    expect(page.faults).toEqual([]);
  });
});

it("the console shows 1,000 keys in pages, and can filter the keys", async () => {
  const { orgId, key } = await makeOrganization(adminUrl(), ADMIN_TOKEN);
  await browser.sql(
    `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
    SELECT printf('key_%024d', i), printf('crowd-%064d', i), org_id, member_id, printf('Robot %d', i), prefix, scope,
      rpm_limit, created_at + i FROM keys JOIN n WHERE org_id = ?`,
    orgId,
  );
  const page = await login(key);
  await show(page, "keys");
  await page.getByText(/^1 to 50 of 1.?000$/).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("robot 777");
  await page.getByRole("cell", { name: "Robot 777" }).waitFor();
  await expect.poll(() => page.locator("main tbody tr").count()).toBe(1);
  expect(page.faults).toEqual([]);
});

it.each([
  ["", /Get started.*curl/s],
  ["activity", /No requests in this period/],
  ["requests", /No requests yet/],
  ["end-users", /No end users yet.*first request/s],
])(
  "the console page %s suggests a first action to an organization without requests",
  async (path, text) => {
    const page = await login(empty.key);
    await show(page, path);
    await expect.poll(() => page.locator("main").textContent()).toMatch(text);
    expect(page.faults).toEqual([]);
  },
);

describe("the console while another region is unavailable", () => {
  it("revokes a global key, and shows operators that the unavailable region hasn't been notified yet", async () => {
    const { orgId, memberId } = empty;
    const admin = { url: adminUrl(), token: ADMIN_TOKEN };
    const terms = { orgId, memberId, name: "Traveling", scope: "global" } as const;
    const key = await createKey(admin, terms);
    const page = await login(empty.key);
    await show(page, "keys");
    await page.getByRole("cell", { name: "Traveling" }).click();
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke Traveling" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const refused = await fetch(`${browser.origin}/v1/balance`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(refused.status).toBe(401);
    const operator = await login(ADMIN_TOKEN);
    await show(operator, "health");
    await operator
      .getByRole("row", { name: /us\/revocations.*1/ })
      .first()
      .waitFor();
    expect(page.faults).toEqual([]);
  });

  it("keeps showing the page's last data and the time of the next retry, and updates the page after recovery", async () => {
    const page = await login(empty.key);
    await show(page, "keys");
    await page.context().setOffline(true);
    await page.getByText(/Can't reach this region\. Next try in/).waitFor();
    expect(await page.getByRole("cell").count()).toBeGreaterThan(1);
    let requests = 0;
    page.on("request", () => requests++);
    // A retry is announced while the notice is visible.
    await page.getByRole("button", { name: "Try now" }).click();
    await page.getByText(/Can't reach this region\. Next try in/).waitFor();
    await expect.poll(() => requests).toBeGreaterThan(0);
    await page.context().setOffline(false);
    await page.getByText(/Can't reach this region/).waitFor({ state: "detached" });
  });
});

describe("the console's session cookie", () => {
  it("gives access only until the session ends; the next click then opens the login page", async () => {
    const page = await login(empty.key);
    await page.context().clearCookies();
    await page.goto("/console/#/keys");
    await page.getByText(/This session has ended/).waitFor();
    await page.getByLabel(LABEL).waitFor();
  });

  it("disappears when the session ends, and the login page opens", async () => {
    const page = await login(empty.key);
    const [cookie] = await page.context().cookies();
    const ended = await fetch(`${browser.origin}/console/api/logout`, {
      method: "POST",
      headers: { origin: browser.origin, cookie: `${cookie?.name}=${cookie?.value}` },
    });
    expect(ended.status).toBe(204);
    await page.goto("/console/#/keys");
    await page.getByText(/This session has ended/).waitFor();
    await page.getByLabel(LABEL).waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  it.each(["", "nonsense", `a${"0".repeat(43)}${"f".repeat(64)}`])(
    "gives no access if the cookie is forged: %j",
    async (value) => {
      const page = await browser.open("/docs/");
      await page.setExtraHTTPHeaders({ cookie: `__Host-turnpike-eu=${value}` });
      await page.goto("/console/");
      await page.getByLabel(LABEL).waitFor();
    },
  );

  it("gives no access to a page of another origin", async () => {
    const page = await login(empty.key);
    const createKeyFrom = (origin: string): Promise<number> =>
      page
        .context()
        .request.post("/console/api/v1/keys", {
          headers: { origin },
          data: { name: "Forged" },
        })
        .then((response) => response.status());
    expect(await createKeyFrom("https://evil.example")).toBe(403);
    expect(await createKeyFrom("null")).toBe(403);
    expect(await createKeyFrom(browser.origin)).toBe(201); // the cookie itself was valid
  });
});

it("the console accepts a pasted key with line breaks", async () => {
  const half = Math.floor(empty.key.length / 2);
  const page = await browser.open("/console/");
  await page.getByLabel(LABEL).focus();
  await page.evaluate(
    (text) => document.execCommand("insertText", false, text), // as some terminals copy it
    ` \n${empty.key.slice(0, half)}\r\n  ${empty.key.slice(half)}\t \n`,
  );
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  expect(page.faults).toEqual([]);
});

it("the console escapes HTML in every name field", async () => {
  const { orgId, key } = await makeOrganization(adminUrl(), ADMIN_TOKEN);
  const page = await login(key);
  page.on("dialog", () => expect.unreachable("a script ran"));
  await show(page, "settings");
  await page.getByLabel("Name", { exact: true }).fill(HOSTILE);
  await page.getByRole("button", { name: "Save names" }).click();
  await show(page, "keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name").fill(HOSTILE);
  // The model is invalid, so the request is rejected and its text shown.
  await page.getByLabel("Models").fill(HOSTILE);
  await page.getByLabel("End user").fill(HOSTILE);
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.locator(".failed, .wrong").first().waitFor();
  await page.getByRole("button", { name: `${HOSTILE} ✕` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.locator(".secret code").waitFor();
  await page.reload();
  await page.getByRole("cell", { name: HOSTILE }).click();
  await page.getByRole("heading", { name: HOSTILE }).waitFor();
  await show(page, "end-users");
  await page.getByRole("button", { name: "New end user" }).click();
  await page.getByRole("dialog").getByLabel("End user ID").fill(HOSTILE);
  await page.getByRole("button", { name: "Create end user" }).click();
  await page.getByRole("cell", { name: HOSTILE }).waitFor();
  await show(page, "playground");
  await page.getByLabel("Model").selectOption("sandbox/echo");
  await page.getByLabel("System", { exact: true }).fill(HOSTILE);
  await page.getByLabel("User", { exact: true }).fill(HOSTILE);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".answer", { hasText: HOSTILE }).waitFor();
  await show(page, "events");
  // Shows the key under its name.
  await page.getByRole("cell", { name: HOSTILE }).first().waitFor();
  const hostile = encodeURIComponent(HOSTILE);
  for (const at of [`activity?split=model&model=${hostile}`, `requests?model=${hostile}`]) {
    await show(page, at);
    expect(await page.locator(".failed").count()).toBe(0);
  }
  await show(page, "events?tab=Webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  // The receiver returns 404. No other host is called.
  const receiver = browser.origin.replace("localhost", "127.0.0.1");
  await page.getByLabel("Address").fill(`${receiver}/hook/${HOSTILE}`);
  await page.getByRole("button", { name: "Create webhook" }).click();
  await page.locator(".secret code").waitFor();
  await page.reload();
  await page
    .getByRole("cell", { name: `${receiver}/hook/` })
    .first()
    .waitFor();
  const operator = await login(ADMIN_TOKEN);
  operator.on("dialog", () => expect.unreachable("a script ran"));
  await show(operator, "organizations");
  await operator.getByRole("button", { name: "New organization" }).click();
  const dialog = operator.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill(HOSTILE);
  await dialog.getByLabel("Slug").fill("hostile-name");
  // The address is invalid, so the form is rejected and the text shown.
  await dialog.getByLabel("Owner's email").fill(HOSTILE);
  await dialog.getByRole("button", { name: "Create organization" }).click();
  await dialog.getByText("must be an email address").first().waitFor();
  await dialog.getByLabel("Owner's email").fill("owner@example.com");
  await dialog.getByRole("button", { name: "Create organization" }).click();
  await operator.locator(".secret code").waitFor();
  await show(operator, `organizations/${orgId}`);
  await operator.getByRole("button", { name: "Add credits…" }).click();
  await operator.getByLabel("Amount").fill("1");
  await operator.getByLabel("Reference").fill(HOSTILE);
  await operator.getByRole("button", { name: /^Add \$/ }).click();
  await operator.getByRole("cell", { name: HOSTILE }).first().waitFor();
  for (const one of [page, operator]) {
    expect(await one.locator("script:not([src])").count()).toBe(0);
    // The browser logs the rejected address.
    expect(one.faults.filter((fault) => !fault.includes("status of 400"))).toEqual([]);
  }
});
