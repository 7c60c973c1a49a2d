import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { expectAccessible, goTo, logIn, openWindow, pageLoaded } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const ROLES = ["read", "support", "finance"] as const;
const tokenOf = (role: string): string => `test-${role}-token-`.padEnd(40, "b");
const ADMIN_TOKENS = ROLES.map((role) => `${role}-one/${role}:${tokenOf(role)}`).join(",");
const DAY_MS = 86_400_000;
const browser = openWindow({ bindings: { ADMIN_TOKENS } });
let orgId: string;

beforeAll(async () => {
  const url = `${browser.origin}/admin/v1`;
  const organization = await makeOrganization(url, ADMIN_TOKEN);
  ({ orgId } = organization);
  const from = new Date(Date.now() + 2 * DAY_MS).toISOString();
  const rows = [{ list: "default", item: "sandbox/echo", from, percent: 10 }];
  await post(`${url}/prices`, ADMIN_TOKEN, { rows });
  const hook = { url: "https://hooks.example.com/of-roles", types: ["balance.low"] };
  await post(`${browser.origin}/v1/webhooks`, organization.key, hook);
  await browser.sql(
    "INSERT INTO company_domains (domain, org_id, nonce, created_at, proven_at) VALUES ('roles.example', ?, 'n', 1, 1)",
    orgId,
  );
  await browser.sql(
    `INSERT INTO company_issuers (org_id, id, issuer, client_id, client_secret, created_at)
     VALUES (?, 'iss_of_roles', 'https://login.roles.example', 'c', 's', 1)`,
    orgId,
  );
});

async function post(url: string, token: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status, await response.text()).toBe(201);
}

it("an operator in a customer's view sees all clients on the Connect page, and why two pages are empty", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  await page.goto(`/console/#/organizations/${orgId}`);
  await page.getByRole("button", { name: "View as customer" }).click();
  await page.getByText("without making changes").waitFor();
  await goTo(page, "Connect");
  await page.getByRole("tab").first().waitFor();
  expect(await page.getByLabel(/key/i).count()).toBe(0);
  await goTo(page, "Playground");
  await page.getByText("You can't send requests in the customer view").waitFor();
  await goTo(page, "Team");
  await page.getByText("to see the members on the customer's page").waitFor();
  await expectAccessible(page);
  expect(page.faults).toEqual([]);
});

it("an operator's form for a key shows an invalid limit's error at the field, and sends only changed fields", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  const sent: unknown[] = [];
  page.on("request", (request) => {
    if (request.method() === "PATCH") sent.push(request.postDataJSON());
  });
  await page.goto(`/console/#/organizations/${orgId}`);
  const dialog = page.getByRole("dialog");
  const tokens = dialog.getByLabel("Token limit, per 60 s");
  const save = dialog.getByRole("button", { name: "Save" });
  await page.getByRole("button", { name: "Limits…" }).click();
  await tokens.fill("5000");
  await save.click();
  await dialog.waitFor({ state: "detached" });
  expect(sent).toEqual([{ tpm_limit: 5000 }]);
  await page.reload();
  await page.getByRole("button", { name: "Limits…" }).click();
  expect(await tokens.inputValue()).toBe("5000");
  await tokens.clear();
  await tokens.pressSequentially("5-000");
  await save.click();
  expect(await tokens.evaluate((field: HTMLInputElement) => field.validity.badInput)).toBe(true);
  expect(await dialog.count()).toBe(1);
  await tokens.fill("5000");
  await dialog.getByLabel("Rate limit, per 60 s").fill("900");
  await save.click();
  await dialog.waitFor({ state: "detached" });
  expect(sent.slice(1)).toEqual([{ rpm_limit: 900 }]);
  expect(page.faults).toEqual([]);
});

/**
 * Returns the buttons of the operators' pages as `page: label`. Includes those above an
 * organization's tabs once.
 */
async function buttonsOf(page: WatchedPage): Promise<ReadonlySet<string>> {
  const org = `organizations/${orgId}`;
  const found = new Set<string>();
  for (const [name, at] of [
    ["list", "organizations"],
    ["one", org],
    ["list of it", `${org}?tab=Prices`],
    ["access", `${org}?tab=Access`],
    ["webhooks", `${org}?tab=Webhooks`],
    ["recovery", `${org}?tab=Recovery`],
    ["margin", "business"],
    ["prices", "business?tab=Prices"],
  ] as const) {
    await page.goto(`/console/#/${at}`);
    await page.reload(); // a change of only the hash does not reload the page
    await page.locator("main h1").waitFor();
    await page.waitForLoadState("networkidle");
    await pageLoaded(page);
    for (const text of await page.locator("main button").allTextContents()) {
      const isAbove = at.startsWith(`${org}?`) && found.has(`one: ${text}`);
      if (!isAbove) found.add(`${name}: ${text}`);
    }
  }
  return found;
}

const OF_SUPPORT = [
  "access: Approve",
  "access: Cancel invitation…",
  "access: Invite…",
  "access: Remove company login…",
  "list: New organization",
  "one: Add member…",
  "one: Change…",
  "one: Limits…",
  "one: New key…",
  "one: Remove…",
  "one: Revoke…",
  "one: Role…",
  "one: Rotate…",
  "one: Suspend…",
  "webhooks: Replay…",
  "webhooks: Send test event",
];
const OF_FINANCE = [
  "list of it: Schedule price",
  "margin: Import provider bill…",
  "one: Add credits…",
  "one: Change…",
  "one: Reconcile",
  "prices: Remove…",
  "prices: Reprice requests…",
  "prices: Schedule price",
];
const OF_ALL_ALONE = ["recovery: Close customer…", "recovery: Rebuild the wallet…"];

it("an operator sees only buttons that the operator's role may use", async () => {
  const plain = await buttonsOf(await logIn(browser, tokenOf("read")));
  const verbs = async (token: string): Promise<readonly string[]> =>
    [...(await buttonsOf(await logIn(browser, token)))]
      .filter((button) => !plain.has(button))
      .toSorted();
  expect(await verbs(tokenOf("support"))).toEqual(OF_SUPPORT);
  expect(await verbs(tokenOf("finance"))).toEqual(OF_FINANCE);
  const all = new Set([...OF_SUPPORT, ...OF_FINANCE, ...OF_ALL_ALONE]);
  expect(await verbs(ADMIN_TOKEN)).toEqual([...all].toSorted());
});

it("an operator sees only fields that the operator's role may change", async () => {
  const support = await logIn(browser, tokenOf("support"));
  await support.goto(`/console/#/organizations/${orgId}`);
  const dialog = support.getByRole("dialog");
  await support.getByRole("button", { name: "Change…" }).click();
  await dialog.getByLabel("Rate limit, per 60 s").fill("900");
  expect(await dialog.getByLabel("Price list").count()).toBe(0);
  await dialog.getByRole("button", { name: "Save" }).click();
  await support.getByText("900", { exact: true }).waitFor();
  await support.getByRole("button", { name: "All organizations" }).click();
  await support.getByRole("button", { name: "New organization" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Made by support");
  await dialog.getByLabel("Owner's email").fill("owner@example.com");
  expect(await dialog.getByLabel("First credit [$]").count()).toBe(0);
  await dialog.getByRole("button", { name: "Create organization" }).click();
  await support.locator(".secret code").waitFor();
  expect(support.faults).toEqual([]);
  const finance = await logIn(browser, tokenOf("finance"));
  await finance.goto(`/console/#/organizations/${orgId}`);
  await finance.getByRole("button", { name: "Change…" }).click();
  await finance.getByRole("dialog").getByLabel("Price list").fill("nobody-s");
  expect(await finance.getByRole("dialog").locator("input").count()).toBe(1);
  await finance.getByRole("button", { name: "Save" }).click();
  // The role is not mentioned.
  await finance.getByText("has no prices in this region").first().waitFor();
});

it("an operator can remove an organization's own identity provider", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  const remove = page.getByRole("button", { name: "Remove company login…" });
  const organization = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN);
  await page.goto(`/console/#/organizations/${organization.orgId}?tab=Access`);
  await page.getByText("No domains. People can't join by email address.").waitFor();
  expect(await remove.count()).toBe(0);
  await page.goto(`/console/#/organizations/${orgId}?tab=Access`);
  await remove.click();
  await page.getByRole("button", { name: "Remove login", exact: true }).click();
  await remove.waitFor({ state: "detached" });
  expect(page.faults).toEqual([]);
});

it("an operator can schedule a customer's price on the customer's page", async () => {
  const organization = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN);
  const page = await logIn(browser, ADMIN_TOKEN);
  await page.goto(`/console/#/organizations/${organization.orgId}?tab=Prices`);
  await page.getByRole("heading", { name: "The region's prices apply" }).waitFor();
  await page.getByRole("button", { name: "Schedule price" }).click();
  const dialog = page.getByRole("dialog");
  const model = dialog.getByLabel(/^Model/);
  await dialog.getByText("at least 1 hour from now").waitFor();
  await dialog.locator('datalist option[value="sandbox/echo"]').waitFor({ state: "attached" });
  await model.fill("nobody/nothing");
  await dialog.getByLabel(/^Input/).fill("1");
  await dialog.getByLabel(/^Output/).fill("1");
  await dialog.getByRole("button", { name: "Schedule price" }).click();
  await dialog.locator(".field.wrong", { hasText: "no model is 'nobody/nothing'" }).waitFor();
  await model.fill("sandbox/echo");
  const current = dialog.locator("label", { hasText: "Input [" }).locator(".muted");
  await current.getByText(/^Now .*\$[\d.]+ in, \$[\d.]+ out/).waitFor();
  const start = new Date(Date.now() + 3 * DAY_MS).toISOString().slice(0, 16);
  await dialog.getByLabel(/^Start/).fill(start);
  await dialog.getByLabel(/^Input/).fill("1.25");
  await dialog.getByLabel(/^Output/).fill("2.5");
  await dialog.getByRole("button", { name: "Schedule price" }).click();
  await page.getByRole("heading", { name: /^Price list test-/ }).waitFor();
  const scheduled =
    /sandbox\/echo.*\$1\.25 in, \$2\.50 out.*scheduled Now \$1\.00 in, \$2\.00 out \(list price\)/;
  const row = page.getByRole("row", { name: scheduled });
  await row.waitFor();
  await row.getByRole("button", { name: "Remove…" }).click();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  // A model that is billed by images has a field for their price.
  await page.getByRole("button", { name: "Schedule price" }).click();
  await dialog.locator('datalist option[value="sandbox/image"]').waitFor({ state: "attached" });
  await model.fill("sandbox/image");
  await dialog.getByLabel("Price [$ per image]").fill("0.05");
  await dialog.getByLabel("Price [$ per million image input tokens]").fill("2");
  await dialog.getByLabel(/^Input/).fill("1.5");
  expect(await dialog.getByLabel(/^Output/).count()).toBe(0);
  await dialog.getByRole("button", { name: "Schedule price" }).click();
  await page.getByRole("row", { name: /sandbox\/image.*\$0\.05 per image.*scheduled/ }).waitFor();
  const read = await fetch(`${browser.origin}/admin/v1/orgs/${organization.orgId}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { slug, price_list } = (await read.json()) as { slug: string; price_list: string };
  expect(price_list).toBe(slug);
  expect(page.faults).toEqual([expect.stringContaining("400")]); // reports the unknown model
});
