import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  Locator,
  Page,
} from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { bundleWorker } from "../../scripts/bundle.ts";
import { freePort } from "../../scripts/ports.ts";
import { linkBindings, startRegion } from "../../scripts/region.ts";
import type { Region } from "../../scripts/region.ts";
import { ADMIN_TOKEN, LINK } from "../node/support/two-regions.ts";

/** Maximum wait for a page to show something, because the machine can be slow. */
const PATIENCE_MS = Number(process.env["PATIENCE_MS"] ?? 100_000);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const DESKTOP = { viewport: { width: 1280, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** A region that serves its site, and a browser for it, shared by all tests of a file. */
export type BrowserWindow = {
  /** The region's address, without a trailing slash. */
  readonly origin: string;
  /** Runs a statement in the region's database. */
  readonly sql: (statement: string, ...values: readonly unknown[]) => Promise<void>;
  /** Opens a page in a new browser context without cookies, which is closed after the test. */
  readonly open: (path: string, options?: BrowserContextOptions) => Promise<WatchedPage>;
};

/** A page and its faults: errors in its console and requests to other origins. */
export type WatchedPage = Page & { readonly faults: readonly string[] };

type WindowOptions = {
  /**
   * The entry of another Worker than the gateway, from the root of the repository. Its peer never
   * responds.
   */
  readonly entry?: string;
  /** Additional settings of the region. */
  readonly bindings?: Readonly<Record<string, string>>;
};

export function openWindow({ entry, bindings = {} }: WindowOptions = {}): BrowserWindow {
  let region: Region | undefined;
  let browser: Browser | undefined;
  let origin = "";
  const contexts: BrowserContext[] = [];
  beforeAll(async () => {
    const worker = entry && path.join(import.meta.dirname, "../..", entry);
    const [code, port, nowhere] = await Promise.all([
      bundleWorker(false, worker),
      freePort(),
      freePort(),
    ]);
    region = await startRegion({
      region: "eu",
      port,
      peers: entry === undefined ? [] : [{ region: "us", url: `http://localhost:${nowhere}` }],
      code,
      hasSite: true,
      bindings: {
        KEY_SECRETS: `a:${"k".repeat(32)}`,
        ADMIN_TOKEN,
        SANDBOX: "on",
        ...linkBindings("eu", LINK),
        ...bindings,
      },
    });
    origin = `http://localhost:${port}`;
    browser = await launchBrowser();
  });
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await region?.miniflare.dispose();
  });
  return {
    get origin() {
      return origin;
    },
    sql: async (statement, ...values) => {
      const book = await region?.miniflare.getD1Database("DB", "turnpike-eu");
      await book
        ?.prepare(statement)
        .bind(...values)
        .run();
    },
    open: async (path, options = DESKTOP) => {
      if (browser === undefined) throw new Error("the browser did not start");
      const { page, context, faults } = await openPage(browser, origin + path, options);
      contexts.push(context);
      return Object.assign(page, { faults });
    },
  };
}

export function launchBrowser(): Promise<Browser> {
  return chromium.executablePath().then((executablePath) =>
    playwright.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
      headless: true,
    }),
  );
}

/** A page in its own browser context, and its faults. */
export type Opened = {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly faults: readonly string[];
};

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = DESKTOP,
): Promise<Opened> {
  const { origin } = new URL(url);
  const context = await browser.newContext({ locale: "en-GB", ...options, baseURL: origin });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { protocol, origin: requestOrigin } = new URL(request.url());
    if (protocol.startsWith("http") && requestOrigin !== origin)
      faults.push(`requested ${request.url()}`);
  });
  await page.goto(url);
  return { page, context, faults };
}

/** Opens the console with a key or an operator's token. */
export async function logIn(
  window: BrowserWindow,
  secret: string,
  options?: BrowserContextOptions,
): Promise<WatchedPage> {
  const page = await window.open("/console/", options);
  await page.getByLabel("API key or operator's token").fill(`  ${secret} `); // pasted, as people do
  await page.keyboard.press("Enter");
  await navigation(page).waitFor();
  return page;
}

/** Returns the list of the console's pages. */
export const navigation = (page: Page): Locator => page.getByRole("navigation", { name: "Pages" });

/** Opens a page by its entry in the navigation, and waits until it is drawn. */
export async function goTo(page: Page, name: string): Promise<void> {
  const link = navigation(page).getByRole("link", { name, exact: true });
  // A phone shows four entries. The others are in the menu More.
  const more = page.getByRole("button", { name: "More", exact: true });
  await link.or(more).first().waitFor();
  if ((await link.count()) > 0) await link.click();
  else {
    await more.click();
    await page.getByRole("dialog").getByRole("link", { name, exact: true }).click();
  }
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  await pageLoaded(page);
}

/** Waits until the page has loaded all of its data. */
export async function pageLoaded(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector("main [aria-busy=true]") === null);
}

/** Checks that the page breaks no rule of axe. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await brokenRules(page)).toEqual([]);
}

/** Returns the broken rules of axe with their elements. */
export async function brokenRules(page: Page): Promise<readonly string[]> {
  // Bypasses the page's Content-Security-Policy, as an assistive tool does.
  if (!(await page.evaluate(() => Reflect.has(globalThis, "axe")))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = Reflect.get(globalThis, "axe") as {
      run(options: {
        readonly resultTypes: readonly string[];
      }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
    };
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
}
