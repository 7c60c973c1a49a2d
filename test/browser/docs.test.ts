import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DESKTOP, expectAccessible, openWindow, PHONE } from "./browser.ts";

const DOCS = path.join(import.meta.dirname, "../../docs");
const PAGES = readdirSync(DOCS)
  .filter((file) => file.endsWith(".md") && file !== "README.md")
  .map((file) => file.slice(0, -".md".length));

const browser = openWindow();

describe("the docs site", () => {
  it.each(PAGES)(
    "shows %s without errors, requests to other hosts or serious accessibility findings",
    async (name) => {
      const page = await browser.open(`/docs/${name}`);
      expect(await page.locator("h1").first().textContent()).not.toBe("");
      await expectAccessible(page);
      expect(page.faults).toEqual([]);
    },
  );

  it("finds pages by full text, by keyboard only", async () => {
    const page = await browser.open("/docs/");
    await page.keyboard.press("/");
    await page.keyboard.type("idempotency");
    await page.waitForSelector("#found a");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/docs\/use\/idempotency/);
    expect(page.faults).toEqual([]);
  });

  it("shows complete pages without JavaScript", async () => {
    const page = await browser.open("/docs/", { ...DESKTOP, javaScriptEnabled: false });
    for (const name of PAGES) {
      await page.goto(`/docs/${name}`);
      expect(await page.locator("h1").isVisible(), name).toBe(true);
      expect(await page.locator("main").textContent(), name).toMatch(/\w{3}/);
      expect(await page.locator("nav.tree a").count(), name).toBeGreaterThan(7);
    }
    expect(page.faults).toEqual([]);
  });

  it("switches the language of code blocks by click or arrow key without JavaScript", async () => {
    const page = await browser.open("/docs/start", { ...DESKTOP, javaScriptEnabled: false });
    const chat = page.getByRole("group", { name: "Language" }).first();
    await chat.getByText('-H "$AUTH"').waitFor();
    expect(await chat.getByText("from openai import").isVisible()).toBe(false);
    await chat.getByText("Python", { exact: true }).click();
    await chat.getByText("from openai import").waitFor();
    expect(await chat.getByText('-H "$AUTH"').isVisible()).toBe(false);
    await page.keyboard.press("ArrowLeft");
    await chat.getByText("new OpenAI()").waitFor();
    const plain = await page.request.get("/docs/start.md");
    expect(await plain.text()).not.toContain("<");
  });

  it("remembers the chosen programming language on every page", async () => {
    const page = await browser.open("/docs/start");
    const groups = page.getByRole("group", { name: "Language" });
    await groups.last().getByText("Python", { exact: true }).click();
    await groups.first().getByText("from openai import").waitFor();
    await expectAccessible(page);
    await page.goto("/docs/clients");
    await groups.last().getByText("from anthropic import Anthropic").waitFor();
    expect(page.faults).toEqual([]);
  });

  it("never scrolls sideways on a phone", async () => {
    for (const name of ["start", "errors", "figures", "models-and-prices"]) {
      const page = await browser.open(`/docs/${name}`, PHONE);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(over, name).toBeLessThanOrEqual(0);
    }
  });

  it("remembers the chosen color scheme", async () => {
    const page = await browser.open("/docs/start", { ...DESKTOP, colorScheme: "light" });
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.locator("#scheme").click();
    const dark = await paper();
    expect(dark).not.toBe(light);
    await page.goto("/docs/errors");
    expect(await paper()).toBe(dark);
    await expectAccessible(page);
  });

  it("suggests similar pages at an unknown address", async () => {
    const page = await browser.open("/docs/start");
    const response = await page.goto("/docs/webhook-signing");
    expect(response?.status()).toBe(404);
    await page.getByText("Similar pages:").waitFor();
    await page.locator("main").getByRole("link", { name: "Receive events" }).waitFor();
    await expectAccessible(page);
  });

  it("shows the region and a link to the quickstart on the first page", async () => {
    const page = await browser.open("/");
    await page.getByText("This region: EU, available").waitFor();
    await expectAccessible(page);
    await page.locator("main").getByRole("link", { name: "Quickstart" }).click();
    await page.waitForURL(/\/docs\/use\/quickstart/);
    expect(page.faults).toEqual([]);
  });

  it("inserts a key into every code block, copies the complete code, and stores the key nowhere", async () => {
    const page = await browser.open("/docs/use/quickstart");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const secret = `svc_sk_eu_live_${"k".repeat(40)}`;
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url() + (request.postData() ?? "")));
    await page.locator("main pre", { hasText: browser.origin }).first().waitFor();
    await page.getByLabel("Your key").fill(secret);
    const blocks = () => page.locator("main pre code").allTextContents();
    expect((await blocks()).join("")).not.toMatch(/YOUR_KEY|YOUR-REGION/);
    await page.locator("nav.tree").getByRole("link", { name: "Connect a client" }).click();
    await page.getByRole("heading", { level: 1, name: "Connect a client" }).waitFor();
    expect((await blocks()).join("")).not.toMatch(/YOUR_KEY|YOUR-REGION/);
    await page.locator("main pre:visible").first().getByRole("button").click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(secret);
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Quickstart" }).waitFor();
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    expect([kept, page.url(), ...requests].join("")).not.toContain("kkkk");
    await page.reload();
    expect(await page.getByLabel("Your key").inputValue()).toBe("");
    expect(page.faults).toEqual([]);
  });

  it("remembers the chosen section (Use or Run) of the docs", async () => {
    const page = await browser.open("/docs/");
    await page.getByRole("link", { name: "Run", exact: true }).click();
    await page.waitForURL(/\/docs\/run\//);
    await page.goto("/docs/");
    await page.locator("[data-tree=run]").getByRole("link", { name: "Operate" }).waitFor();
    expect(await page.locator("[data-tree=use]").isVisible()).toBe(false);
    expect(page.faults).toEqual([]);
  });

  it("shows a menu of all pages on a phone, with only three tab stops before the text", async () => {
    const page = await browser.open("/docs/use/errors", PHONE);
    expect(await page.locator("nav.tree").isVisible()).toBe(false);
    for (let stop = 0; stop < 3; stop++) await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.closest("main"))).toBeNull();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.closest("main") !== null)).toBe(true);
    await page.evaluate(() => scrollTo(0, 5000));
    await page.getByRole("button", { name: "Menu" }).click();
    await page.locator("nav.tree").getByRole("link", { name: "Events and webhooks" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    expect(await page.locator("nav.tree").isVisible()).toBe(false);
  });

  it.each([
    ["rotate a key", "keys"],
    ["what if the client goes", "streaming"],
    ["webhook signature", "webhooks"],
    ["data in the EU", "regions"],
  ])(
    "lists the right page first for the search '%s', and opens the page in two actions",
    async (query, name) => {
      const page = await browser.open("/docs/");
      await page.getByLabel("Search the docs").fill(query);
      await page.locator("#found a").first().waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(new RegExp(`/docs/\\w+/${name}#`));
    },
  );

  it("shows a header with links to docs and console, the region and the search", async () => {
    const page = await browser.open("/docs/use/errors");
    const header = page.locator("header");
    for (const [name, to] of [
      ["Turnpike", "/docs/"],
      ["Console", "/console/"],
      ["Docs", "/docs/"],
    ] as const) {
      const link = header.getByRole("link", { name, exact: true });
      expect(await link.getAttribute("href")).toBe(to);
    }
    await header.getByText("EU", { exact: true }).waitFor();
    await header.getByRole("searchbox").waitFor();
    await header.getByRole("link", { name: "Console", exact: true }).click();
    await page.waitForURL(/\/console\//);
  });

  it("keeps the colors of code after a key is inserted", async () => {
    const page = await browser.open("/docs/use/quickstart");
    await page.getByLabel("Your key").fill(`svc_sk_eu_live_${"k".repeat(40)}`);
    const block = page.locator("main pre", { hasText: "export OPENAI_API_KEY" });
    await block.getByText("svc_sk_eu_live_kkk").waitFor();
    expect(await block.locator("span[class^=t-]").count()).toBeGreaterThan(2);
  });
});
