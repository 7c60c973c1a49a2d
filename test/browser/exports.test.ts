import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { formatExact, formatCharge } from "../../src/console/browser/lib/money.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { PHONE, expectAccessible, goTo, logIn, openWindow, pageLoaded } from "./browser.ts";

const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };

async function call(method: string, at: string, body?: object, more: object = {}, key = owner.key) {
  const response = await fetch(`${browser.origin}${at}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...more },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.ok, text).toBe(true);
  return text;
}

const messages = [{ role: "user", content: "Hello" }];
const sendTagged = (tags: string) =>
  call("POST", "/v1/chat/completions", { model: "sandbox/echo", messages }, { "x-tags": tags });

beforeAll(async () => {
  owner = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN, { rpmLimit: 1000 });
  await call("PATCH", `/v1/orgs/${owner.orgId}/settings`, { tag_keys: ["team"] });
  await sendTagged("team=search,run=42");
  await sendTagged("team=search");
  await sendTagged("team=ads");
  const agentKey = JSON.parse(await call("POST", "/v1/keys", { name: "Agent", may_hold: true }));
  const own = { pays: "quota", description: "An hour of a GPU", amount_dollars: 0.25 };
  await call("POST", "/v1/charges", own, {}, agentKey.key);
  await call("POST", "/v1/holds", { ...own, description: "Ten searches" }, {}, agentKey.key);
});

describe("the console", () => {
  it("downloads the data of a month or a day exactly as the API returns the data", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "Exports");
    await expectAccessible(page);
    const today = new Date().toISOString().slice(0, 10);
    for (const [name, query] of [
      [today.slice(0, 7), `month=${today.slice(0, 7)}`],
      [today, `day=${today}`],
    ] as const) {
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: `Download ${name}`, exact: true }).click();
      const file = readFileSync(await (await saved).path(), "utf8");
      expect(file).toBe(await call("GET", `/v1/exports/focus?${query}`));
      expect(file.split("\n").length).toBeGreaterThan(3);
    }
    await page.getByRole("link", { name: "Send events to your systems" }).waitFor();
    await page.locator("main").getByRole("link", { name: "Activity" }).click();
    await page.waitForURL(/activity\?split=key&range=last-month/);
    expect(page.faults).toEqual([]);
  });

  it("shows the reason why a download failed", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "Exports");
    await page.route("**/exports/focus?*", (route) => route.abort());
    await page
      .getByRole("button", { name: /^Download/ })
      .first()
      .click();
    await page.getByText("The download was interrupted.").waitFor();
  });

  it("groups and filters the Activity page by tag", async () => {
    const page = await logIn(browser, owner.key);
    await page.goto("/console/#/activity");
    await page.getByLabel("Split").selectOption("tag:team");
    const row = page.getByRole("row", { name: /^\s*search/ });
    const usage = JSON.parse(await call("GET", "/v1/usage?group_by=tag:team")) as {
      data: { group: string; cost_micro: number }[];
    };
    const micros = usage.data.find(({ group }) => group === "search")?.cost_micro ?? 0;
    expect(micros).toBeGreaterThan(0);
    await row.getByText(formatCharge(micros)).first().waitFor();
    await page.getByRole("heading", { name: "Spend by tag team" }).waitFor();
    await expectAccessible(page);
    await row.getByRole("cell").first().click();
    await page.getByRole("button", { name: "team:search ✕" }).waitFor();
    await page.getByLabel("Then group by").selectOption("model");
    await page.getByRole("row", { name: /search.*sandbox/ }).waitFor();
    await page.getByRole("link", { name: "View requests" }).click();
    await pageLoaded(page);
    const rows = page.getByRole("region", { name: "Requests", exact: true }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(2);
    await page.reload();
    await expect.poll(() => rows.count()).toBe(2);
    await rows.last().click();
    await page.getByRole("dialog").getByText("team:search, run:42").waitFor();
    expect(page.faults).toEqual([]);
  });

  it("saves tag keys on the Settings page", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "Settings");
    const field = page.getByLabel("Tags with daily totals");
    expect(await field.inputValue()).toBe("team");
    await field.fill("team, run");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("● Saved").waitFor();
    const settings = JSON.parse(await call("GET", `/v1/orgs/${owner.orgId}/settings`));
    expect(settings.tag_keys).toEqual(["team", "run"]);
  });

  it("shows charges and holds with their purpose and amount", async () => {
    const page = await logIn(browser, owner.key, PHONE);
    await page.goto("/console/#/requests");
    await page.getByText("Direct charge").click();
    const receipt = page.getByRole("dialog");
    await receipt.getByText("Direct charge. An hour of a GPU").waitFor();
    await receipt.getByText(formatExact(250_000)).first().waitFor();
    await expectAccessible(page);
    await page.goto("/console/#/requests?status=held");
    await page.getByText(/1 running/).click();
    await page.setViewportSize({ width: 1280, height: 900 }); // a phone hides this column
    await page.getByRole("region", { name: "Open holds" }).getByText("Direct charge").waitFor();
  });
});
