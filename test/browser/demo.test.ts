import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { startProgram } from "../node/support/program.ts";
import type { Program } from "../node/support/program.ts";
import { DESKTOP, expectAccessible, launchBrowser, openPage, PHONE } from "./browser.ts";
import type { Opened } from "./browser.ts";

/** Where the documents' pictures go: TURNPIKE_PICTURES=docs/pictures makes them anew. */
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-demo-"));
const pictures = path.resolve(process.env["TURNPIKE_PICTURES"] ?? path.join(directory, "pictures"));

let start: Program;
let browser: Awaited<ReturnType<typeof launchBrowser>>;
const opened: Opened[] = [];

beforeAll(async () => {
  mkdirSync(pictures, { recursive: true });
  start = startProgram(["scripts/dev.ts", "--demo"], {
    EU_PORT: String(await freePort()),
    US_PORT: String(await freePort()),
    DEV_DIR: directory,
    SANDBOX: "on", // a developer's own .dev.vars calls nobody here
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

/** The console as the printed link opens it: logged in already. */
async function demoConsole(look: object = DESKTOP): Promise<Opened> {
  const link = /^Console\s+(\S+)$/m.exec(start.output())?.[1] ?? "";
  expect(link).toContain("#key=");
  const one = await openPage(browser, link, look);
  opened.push(one);
  await one.page.getByRole("navigation", { name: "Pages" }).waitFor();
  return one;
}

it("npm start -- --demo prints a link that is logged in, to an organisation with a past that one can see", async () => {
  const { page, faults } = await demoConsole();
  expect(page.url()).not.toContain("key=");
  await page.getByText("Spend of 30 days, by model").waitFor();
  await page.locator("canvas").first().waitFor();
  await page.waitForFunction(() => document.querySelector("main [aria-busy=true]") === null);
  expect(await page.locator(".top-list li").count()).toBeGreaterThanOrEqual(13); // 5 models, keys, 5 users
  await expectAccessible(page);
  await page.screenshot({ path: path.join(pictures, "overview.png") });
  expect(faults).toEqual([]);
});

it.each(["activity", "requests", "end-users", "keys"])(
  "%s of 90 days is drawn, light and dark",
  async (name) => {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, faults } = await demoConsole({ ...DESKTOP, colorScheme });
      await page.goto(new URL(`/console/#/${name}`, page.url()).href);
      await page.locator("main table, main canvas").first().waitFor();
      await page.waitForFunction(() => document.querySelector("main [aria-busy=true]") === null);
      await expectAccessible(page);
      const file = path.join(pictures, `${name}${colorScheme === "dark" ? "-dark" : ""}.png`);
      if (name === "activity" || (name === "requests" && colorScheme === "light")) {
        await page.screenshot({ path: file });
      }
      expect(faults).toEqual([]);
    }
  },
);

it("the overview fits a phone", async () => {
  const { page, faults } = await demoConsole(PHONE);
  await page.locator("canvas").first().waitFor();
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(over).toBeLessThanOrEqual(0);
  expect(faults).toEqual([]);
});
