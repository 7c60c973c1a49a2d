import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { startProgram } from "../node/support/program.ts";
import type { Program } from "../node/support/program.ts";
import { launchBrowser, openPage, rail } from "./browser.ts";
import type { Opened } from "./browser.ts";

/** What `npm start` starts, and a browser in front of it; for all tests of a file. */
export type Started = {
  /** What it has printed. */
  readonly output: () => string;
  /** Each region's address, without a slash at its end. */
  readonly origins: Readonly<Record<"eu" | "us", string>>;
  /** Where it keeps what it knows, as `demo.json`. */
  readonly directory: string;
  /** A page of a browser of its own, at the first region, or at a whole address. */
  readonly open: (at: string, options?: BrowserContextOptions) => Promise<Page>;
  /** The same with its context, and what happened that must not. */
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
      SANDBOX: "on", // a developer's .dev.vars must not call providers
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

/** Says to the issuer of this machine who one is; the console is there then. */
export async function continueAs(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Continue with this machine" }).click();
  await page.getByRole("link", { name: `Continue as ${name}` }).click();
  await rail(page).waitFor();
}

export async function signUp(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Create account" }).click();
  await continueAs(page, name);
}
