import { readdirSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeAll, expect, it } from "vitest";
import { createKey, postMember } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { brokenRules, goTo, logIn, openWindow, navigation } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };
const admin = () => ({ url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN });

/**
 * Sizes and settings in which pages are checked. At 200 % zoom, a page has half of the desktop's
 * width.
 */
const DESK = { width: 1280, height: 900 };
const WAYS = {
  light: { size: DESK, colorScheme: "light" },
  dark: { size: DESK, colorScheme: "dark" },
  "forced colors": { size: DESK, colorScheme: "dark", forcedColors: "active" },
  "a phone, light": { size: { width: 390, height: 844 }, colorScheme: "light" },
  "a phone, dark": { size: { width: 390, height: 844 }, colorScheme: "dark" },
  "200 %": { size: { width: 640, height: 450 }, colorScheme: "light" },
} as const;
const SOME = ["dark", "forced colors", "a phone, light"] as const;
type Way = keyof typeof WAYS;

beforeAll(async () => {
  owner = await makeOrganization(admin().url, ADMIN_TOKEN, { rpmLimit: 1000 });
  const messages = [{ role: "user", content: "Hello" }];
  for (const user of ["ann", "bob"]) {
    await post("chat/completions", { model: "sandbox/echo", user, messages });
  }
  await post("chat/completions", { model: "nope/none", messages });
  const created = await post("webhooks", { url: "https://hooks.example.com/turnpike" });
  expect(created.status).toBe(201);
});

/** Sends a POST request as the organization's owner. */
function post(at: string, body: object): Promise<Response> {
  return fetch(`${browser.origin}/v1/${at}`, {
    method: "POST",
    headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function keyOf(role: "admin" | "billing" | "member"): Promise<string> {
  const email = `${role}-${Math.random().toString(36).slice(2)}@example.com`;
  const { id: memberId } = await postMember(admin(), owner.orgId, { email, role });
  const more = { name: `of ${role}`, scope: "regional", rpmLimit: 1000 } as const;
  return createKey(admin(), { orgId: owner.orgId, memberId, ...more });
}

/** Faults of all checked pages. Each test reports its own at its end. */
const faults: string[] = [];
afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

/** Checks that a page breaks no rule of axe and does not scroll sideways, in some display modes. */
async function lookAt(page: WatchedPage, name: string, ways: readonly Way[]): Promise<void> {
  for (const way of ways) {
    const { size, ...media } = WAYS[way];
    await page.setViewportSize(size);
    await page.emulateMedia({ forcedColors: "none", ...media });
    faults.push(...(await brokenRules(page)).map((rule) => `${name}, ${way}: ${rule}`));
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) faults.push(`${name}, ${way}: scrolls sideways by ${over}`);
  }
  await page.setViewportSize(DESK);
}

async function lookAtAll(page: WatchedPage, ways: readonly Way[]): Promise<void> {
  const links = await navigation(page).getByRole("link").allTextContents();
  const names = links.filter((name) => name !== "Turnpike");
  expect(names.length).toBeGreaterThan(1);
  for (const name of names) {
    await goTo(page, name);
    await lookAt(page, name, ways);
  }
}

const everyWay = Object.keys(WAYS) as Way[];

it("every page of an owner's console is accessible in each display mode", async () => {
  const page = await logIn(browser, owner.key);
  await lookAtAll(page, everyWay);
  expect(page.faults).toEqual([]);
});

it("every dialog and menu that a page opens is accessible in each display mode", async () => {
  const page = await logIn(browser, owner.key);
  const opened: readonly (readonly [rail: string, open: () => Promise<unknown>])[] = [
    ["Keys", () => page.getByRole("button", { name: "Create key" }).first().click()],
    ["Keys", () => page.getByRole("row").nth(1).click()],
    ["End users", () => page.getByRole("cell", { name: "ann" }).click()],
    ["Requests", () => page.getByRole("row", { name: /echo/ }).first().click()],
    [
      "Requests",
      () =>
        page
          .getByRole("row", { name: /model_not_found/ })
          .first()
          .click(),
    ],
    ["Events", () => page.getByRole("row").nth(1).click()],
  ];
  for (const [name, open] of opened) {
    await goTo(page, name);
    await open();
    await page.locator("dialog[open], main h1").last().waitFor();
    await lookAt(page, `of ${name}`, everyWay);
    await page.goto("/console/");
    await navigation(page).waitFor();
  }
  expect(page.faults).toEqual([]);
});

it.each(["admin", "billing", "member"] as const)(
  "the console is accessible for the role %s",
  async (role) => {
    const page = await logIn(browser, await keyOf(role));
    await lookAtAll(page, SOME);
    expect(page.faults).toEqual([]);
  },
);

it("the console is accessible for a key with limits", async () => {
  const created = await post("keys", { name: "Limited", budget_dollars: 1, budget_period: "day" });
  const page = await logIn(browser, ((await created.json()) as { key: string }).key);
  await lookAtAll(page, SOME);
  expect(page.faults).toEqual([]);
});

it("the console is accessible for an operator, even on a customer's page", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  await lookAtAll(page, everyWay);
  await page.goto(`/console/#/organizations/${owner.orgId}`);
  await page.getByRole("button", { name: "Add member…" }).waitFor();
  await lookAt(page, "a customer", everyWay);
  expect(page.faults).toEqual([]);
});

it("the console is accessible without a login", async () => {
  const page = await browser.open("/console/");
  await page.getByLabel("API key or operator's token").waitFor();
  await lookAt(page, "log-in", everyWay);
});

const DOCS = path.join(import.meta.dirname, "../../docs");
const DOCUMENTS = readdirSync(DOCS)
  .filter((file) => file.endsWith(".md") && file !== "README.md")
  .map((file) => `/docs/${file.slice(0, -".md".length)}`);

it("the docs site is accessible in each display mode", async () => {
  const page = await browser.open("/docs/");
  const kinds = ["/", "/docs/", "/docs/use/api", "/docs/use/api/keys-1", "/docs/develop/adding"];
  for (const at of [...kinds, ...DOCUMENTS]) {
    await page.goto(at);
    // The display modes of one page of each kind also cover the others, except for their colors and widths.
    const ways: readonly Way[] = kinds.includes(at) ? ["forced colors", "200 %"] : [];
    await lookAt(page, at, ["dark", "a phone, light", ...ways]);
  }
  expect(page.faults).toEqual([]);
});
