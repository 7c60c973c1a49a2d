import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DESKTOP, expectAccessible, openWindow, PHONE } from "./browser.ts";

const DOCS = path.join(import.meta.dirname, "../../docs");
const PAGES = readdirSync(DOCS)
  .filter((file) => file.endsWith(".md") && file !== "README.md")
  .map((file) => file.slice(0, -".md".length));

const browser = openWindow();

describe("the documents", () => {
  it.each(PAGES)(
    "%s: no error, nothing asked of anybody else, nothing that axe calls serious",
    async (name) => {
      const page = await browser.open(`/docs/${name}`);
      expect(await page.locator("h1").first().textContent()).not.toBe("");
      await expectAccessible(page);
      expect(page.faults).toEqual([]);
    },
  );

  it("are found by their words, by keyboard alone", async () => {
    const page = await browser.open("/docs/");
    await page.keyboard.press("/");
    await page.keyboard.type("idempotency");
    await page.waitForSelector("#found a");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/docs\/idempotency/);
    expect(page.faults).toEqual([]);
  });

  it("are read whole without script", async () => {
    const page = await browser.open("/docs/", { ...DESKTOP, javaScriptEnabled: false });
    for (const name of PAGES) {
      await page.goto(`/docs/${name}`);
      expect(await page.locator("h1").isVisible(), name).toBe(true);
      expect(await page.locator("main").textContent(), name).toMatch(/\w{3}/);
      expect(await page.locator("nav.tree a").count(), name).toBeGreaterThan(10);
    }
    expect(page.faults).toEqual([]);
  });

  it("say in which language they speak, without script too, and by the keyboard", async () => {
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

  it("go on in the language that was chosen, on every page", async () => {
    const page = await browser.open("/docs/start");
    const groups = page.getByRole("group", { name: "Language" });
    await groups.last().getByText("Python", { exact: true }).click();
    await groups.first().getByText("from openai import").waitFor();
    await expectAccessible(page);
    await page.goto("/docs/clients");
    await groups.last().getByText("from anthropic import Anthropic").waitFor();
    expect(page.faults).toEqual([]);
  });

  it("never scroll sideways on a phone", async () => {
    for (const name of ["start", "errors", "figures", "models-and-prices"]) {
      const page = await browser.open(`/docs/${name}`, PHONE);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(over, name).toBeLessThanOrEqual(0);
    }
  });

  it("keep a chosen scheme", async () => {
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

  it("an address that is none is 404 with the API's own words", async () => {
    const page = await browser.open("/docs/start");
    const response = await page.goto("/docs/no-such-page");
    expect(response?.status()).toBe(404);
  });
});
