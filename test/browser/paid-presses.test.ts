import { beforeAll, describe, expect, it } from "vitest";
import { postMemberKey } from "../../scripts/admin-client.ts";
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
  it.each(["an owner's key", "a key with limits", "an operator"])("%s", async (who) => {
    const secret =
      { "an owner's key": owner.key, "a key with limits": limited }[who] ?? ADMIN_TOKEN;
    const page = await logIn(browser, secret);
    const paid = paidBy(page);
    const asked: string[] = [];
    let pressed = 0;
    const pages = await pagesOf(page);
    for (const name of pages) {
      for (let i = 0; ; i++) {
        await show(page, pages.find((other) => other !== name) ?? name); // what is open there goes with it
        await show(page, name);
        if (name === "Playground") await expect.poll(() => ask(page).isEnabled()).toBe(true);
        const button = page.locator("main button:enabled").nth(i);
        if ((await button.count()) === 0) break;
        const label = (await button.textContent()) ?? "";
        const before = paid();
        await button.click();
        pressed += 1;
        await settled(page);
        if (label === "Ask") await expect.poll(paid).toBe(before + 1);
        for (let more = before; more < paid(); more++) asked.push(`${name}: ${label}`);
      }
    }
    expect(pressed).toBeGreaterThan(who === "an owner's key" ? 20 : 1);
    expect(asked).toEqual(who === "an operator" ? [] : ["Playground: Ask"]);
  });
});

async function pagesOf(page: WatchedPage): Promise<string[]> {
  const names = await rail(page).getByRole("link").allTextContents();
  return names.filter((name) => !["Turnpike", "Documents"].includes(name));
}

/** As `goTo` by the address alone: a dialog of the page before may be open, or about to be. */
async function show(page: WatchedPage, name: string): Promise<void> {
  const links = page.locator("nav.rail a", { hasText: new RegExp(`^${name}$`) });
  await links.evaluate((link) => (location.hash = (link as HTMLAnchorElement).hash));
  await page.locator("main h1", { hasText: new RegExp(`^${name}$`) }).waitFor();
  await settled(page);
}
