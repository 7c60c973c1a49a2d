import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { startProgram } from "../node/support/program.ts";
import type { Program } from "../node/support/program.ts";
import { launchBrowser, openPage, navigation } from "./browser.ts";
import type { Opened } from "./browser.ts";

/** A running `npm start` and a browser for it, shared by all tests of a file. */
export type Started = {
  /** Returns the output so far. */
  readonly output: () => string;
  /** Each region's address, without a trailing slash. */
  readonly origins: Readonly<Record<"eu" | "us", string>>;
  /** The folder with its state, such as `demo.json`. */
  readonly directory: string;
  /** Opens a page in a new browser context, at a path of the first region or at a URL. */
  readonly open: (at: string, options?: BrowserContextOptions) => Promise<Page>;
  /** Opens a page in the same way, and returns it with its context and faults. */
  readonly watch: (at: string, options?: BrowserContextOptions) => Promise<Opened>;
};

export function openStarted(...args: readonly string[]): Started {
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-started-"));
  const origins = { eu: "", us: "" };
  const opened: Opened[] = [];
  let start: Program | undefined;
  let browser: Browser | undefined;
  beforeAll(async () => {
    const [eu, us] = [await freePort(), await freePort()];
    Object.assign(origins, { eu: `http://127.0.0.1:${eu}`, us: `http://127.0.0.1:${us}` });
    start = startProgram(["scripts/dev.ts", ...args], {
      EU_PORT: String(eu),
      US_PORT: String(us),
      DEV_DIR: directory,
      SANDBOX: "on", // a developer's .dev.vars must not make the test call providers
    });
    expect(await start.says("Stop with Ctrl-C"), start.output()).toBe(true);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    for (const { context } of opened) await context.close();
    await browser?.close();
    start?.child.kill("SIGTERM");
    await start?.ended;
    removeDirectory(directory);
  });
  const watch = async (at: string, options?: BrowserContextOptions): Promise<Opened> => {
    if (browser === undefined) throw new Error("the browser did not start");
    const one = await openPage(browser, new URL(at, origins.eu).href, options);
    opened.push(one);
    return one;
  };
  return {
    origins,
    directory,
    output: () => start?.output() ?? "",
    open: async (at, options) => (await watch(at, options)).page,
    watch,
  };
}

/** Logs in at the local identity provider as this account, and waits for the console. */
export async function continueAs(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Continue with this machine" }).click();
  await page.getByRole("link", { name: `Continue as ${name}` }).click();
  await navigation(page).waitFor();
}

export async function signUp(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Create account" }).click();
  await continueAs(page, name);
}
