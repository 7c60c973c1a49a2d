import { beforeAll, describe, expect, it } from "vitest";
import { createKey, postMember, postMemberKey } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { goTo, logIn, openWindow, rail, settled } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const PAID = /\/console\/api\/v1\/(?:chat\/completions|completions|responses|messages|embeddings)$/;
const LONG_TEXT = "word ".repeat(400);
const browser = openWindow();
let owner: Awaited<ReturnType<typeof makeOrganization>>;
let limited: string;

beforeAll(async () => {
  const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
  owner = await makeOrganization(admin.url, ADMIN_TOKEN, { rpmLimit: 1000 });
  const terms = { rpm_limit: 100, budget_dollars: 0.5, budget_period: "day" };
  limited = (await postMemberKey(admin, owner, { name: "limited", ...terms })).key;
});

/** How many paid requests a page has sent. */
function paidBy(page: WatchedPage): () => number {
  let sent = 0;
  page.on("request", (request) => {
    if (request.method() === "POST" && PAID.test(request.url())) sent += 1;
  });
  return () => sent;
}

async function balance(): Promise<number> {
  const response = await fetch(`${browser.origin}/v1/balance`, {
    headers: { authorization: `Bearer ${owner.key}` },
  });
  const told = (await response.json()) as { held_micro: number; credits_micro: number };
  return told.held_micro > 0 ? NaN : told.credits_micro;
}

/** The playground with a long answer of this model asked for. */
async function asking(key: string, model: string, isStream = true): Promise<WatchedPage> {
  const page = await logIn(browser, key);
  await goTo(page, "Playground");
  await page.getByLabel("Model").selectOption(model);
  await page.getByLabel("User").fill(LONG_TEXT);
  if (!isStream) await page.getByLabel("as a stream").uncheck();
  return page;
}

const ask = (page: WatchedPage) => page.getByRole("button", { name: "Ask", exact: true });
const stop = (page: WatchedPage) => page.getByRole("button", { name: "Stop", exact: true });

/** The cost that the page shows, in micros. */
async function shownCost(page: WatchedPage): Promise<number> {
  const cost = page.locator("dl div", { hasText: "Cost" }).locator(".number");
  return Number(/^(\d+) micros/.exec((await cost.getAttribute("title")) ?? "")?.[1]);
}

describe("Stop in the playground", () => {
  it("ends a stream, asks nobody again and says the final bill, which is what the balance lost", async () => {
    const before = await balance();
    const page = await asking(owner.key, "sandbox/slow-stream");
    const paid = paidBy(page);
    await ask(page).dblclick(); // in haste: still one
    await page.locator(".answer", { hasText: "word word" }).waitFor();
    await stop(page).dblclick();
    const bill = await shownCost(page);
    expect(bill).toBeGreaterThan(0);
    await expect.poll(balance).toBe(before - bill);
    expect(paid()).toBe(1);
    await ask(page).click(); // a later one is the next request
    await expect.poll(paid).toBe(2);
    await stop(page).click();
    expect(page.faults).toEqual([]);
  });

  it("before anything of the answer came says the bill too, or that there is none", async () => {
    await expect.poll(balance).not.toBeNaN();
    const before = await balance();
    const page = await asking(owner.key, "sandbox/slow-first-byte", false);
    const paid = paidBy(page);
    await ask(page).click();
    await expect.poll(paid).toBe(1);
    await stop(page).click();
    const bill = await shownCost(page);
    await expect.poll(balance).toBe(before - bill);
    expect(paid()).toBe(1);
    expect(page.faults).toEqual([]);
  });

  it("with a key that sees no bills says where its spend stands", async () => {
    const page = await asking(limited, "sandbox/slow-stream");
    const paid = paidBy(page);
    await ask(page).click();
    await page.locator(".answer", { hasText: "word word" }).waitFor();
    await stop(page).click();
    await page.getByRole("link", { name: "This key" }).nth(1).waitFor();
    expect(paid()).toBe(1);
    expect(page.faults).toEqual([]);
  });
});

describe("every button of every page, pressed once, pays for nothing but Ask", () => {
  it.each(["owner", "admin", "billing", "member"] as const)(
    "the key of a role: %s",
    async (role) => {
      const page = await logIn(browser, role === "owner" ? owner.key : await keyOf(role));
      const { pressed, asked } = await pressAll(page);
      expect(pressed).toBeGreaterThan(role === "member" ? 10 : 20);
      expect(asked).toEqual(["Playground: Ask"]);
    },
  );

  it("a key with limits", async () => {
    const { pressed, asked } = await pressAll(await logIn(browser, limited));
    expect(pressed).toBeGreaterThan(1);
    expect(asked).toEqual(["Playground: Ask"]);
  });

  it("an operator, and an operator who sees what a customer sees", async () => {
    const page = await logIn(browser, ADMIN_TOKEN);
    expect((await pressAll(page)).asked).toEqual([]);
    await page.goto(`/console/#/organizations/${owner.orgId}`);
    await page.getByRole("button", { name: "See as customer" }).click();
    await page.getByText("every change is refused").waitFor();
    const { pressed, asked } = await pressAll(page);
    expect(pressed).toBeGreaterThan(10);
    expect(asked).toEqual([]);
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await rail(page).getByRole("link", { name: "Catalogue" }).waitFor();
  });
});

/** A key of a new member with this role. */
async function keyOf(role: "admin" | "billing" | "member"): Promise<string> {
  const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
  const member = { email: `${role}@example.com`, role };
  const { id: memberId } = await postMember(admin, owner.orgId, member);
  const { orgId } = owner;
  return createKey(admin, { orgId, memberId, name: role, scope: "regional", rpmLimit: 1000 });
}

/** Presses every button of every page and of each of its tabs, one at a time on a page drawn anew. */
async function pressAll(
  page: WatchedPage,
): Promise<{ readonly pressed: number; readonly asked: readonly string[] }> {
  const paid = paidBy(page);
  const asked: string[] = [];
  let pressed = 0;
  const pages = await pagesOf(page);
  for (const name of pages) {
    const away = pages.find((other) => other !== name) ?? name;
    for (const address of await addressesOf(page, name)) {
      await show(page, name, address);
      const labels = await page.locator("main button:enabled").allTextContents();
      for (const i of differing(labels)) {
        await show(page, away); // what is open there goes with it
        await show(page, name, address);
        if (name === "Playground") await expect.poll(() => ask(page).isEnabled()).toBe(true);
        const button = page.locator("main button:enabled").nth(i);
        if ((await button.count()) === 0) break; // what was pressed took it away
        const label = (await button.textContent()) ?? "";
        const before = paid();
        await button.click();
        pressed += 1;
        await settled(page);
        if (label === "Ask") await expect.poll(paid).toBe(before + 1);
        for (let more = before; more < paid(); more++) asked.push(`${name}: ${label}`);
      }
    }
  }
  expect(page.faults.filter((fault) => fault.startsWith("error"))).toEqual([]);
  return { pressed, asked };
}

/** Which of the buttons are pressed: of those that each row has, the first two. */
function differing(labels: readonly string[]): readonly number[] {
  return labels.flatMap((label, i) =>
    labels.slice(0, i).filter((before) => before === label).length < 2 ? [i] : [],
  );
}

/** A page's own address, and those of its tabs that are none of it. */
async function addressesOf(page: WatchedPage, name: string): Promise<readonly string[]> {
  await show(page, name);
  const own = await page.evaluate(() => location.hash);
  const tabs = await page
    .locator("main nav.tabs a")
    .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).hash));
  return [...new Set([own, ...tabs])];
}

async function pagesOf(page: WatchedPage): Promise<string[]> {
  const names = await rail(page).getByRole("link").allTextContents();
  return names.filter((name) => !["Turnpike", "Documents"].includes(name));
}

/** As `goTo` by the address alone: a dialog of the page before may be open, or about to be. */
async function show(page: WatchedPage, name: string, address = ""): Promise<void> {
  const links = page.locator("nav.rail a", { hasText: new RegExp(`^${name}$`) });
  await links.evaluate((link, at) => {
    location.hash = at === "" ? (link as HTMLAnchorElement).hash : at;
  }, address);
  await page.locator("main h1", { hasText: new RegExp(`^${name}$`) }).waitFor();
  await settled(page);
}
