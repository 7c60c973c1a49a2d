import { afterAll, beforeAll, expect, it } from "vitest";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { bundleWorker } from "../../scripts/bundle.ts";
import { serveIssuer } from "../../scripts/dev-issuer.ts";
import type { ServedIssuer } from "../../scripts/dev-issuer.ts";
import { freePort } from "../../scripts/ports.ts";
import { linkBindings, startRegion } from "../../scripts/region.ts";
import type { Region } from "../../scripts/region.ts";
import { buildSite } from "../../scripts/site/build.ts";
import { ADMIN_TOKEN, LINK } from "../node/support/two-regions.ts";
import { DESKTOP, expectAccessible, goTo, launchBrowser, rail } from "./browser.ts";

let browser: Browser;
let issuer: ServedIssuer;
let regions: { readonly eu: Region; readonly us: Region };
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  await buildSite();
  const [code, eu, us] = await Promise.all([bundleWorker(false), freePort(), freePort()]);
  issuer = await serveIssuer();
  const ports = { eu, us };
  const start = <N extends "eu" | "us">(region: N, peer: "eu" | "us") =>
    startRegion({
      region,
      port: ports[region],
      peers: [{ region: peer, url: `http://127.0.0.1:${ports[peer]}` }],
      code,
      hasSite: true,
      bindings: {
        KEY_SECRETS: `a:${"k".repeat(32)}`,
        ADMIN_TOKEN,
        SANDBOX: "on",
        ...linkBindings(region, LINK),
        ...issuer.bindings,
      },
    });
  regions = { eu: await start("eu", "us"), us: await start("us", "eu") };
  browser = await launchBrowser();
});
afterAll(async () => {
  for (const context of contexts) await context.close();
  await browser?.close();
  issuer?.close();
  await Promise.all(Object.values(regions ?? {}).map((region) => region.miniflare.dispose()));
});

/** A browser of its own at a console. */
async function open(address: string): Promise<Page> {
  const context = await browser.newContext({ locale: "en-GB", ...DESKTOP });
  context.setDefaultTimeout(60_000);
  contexts.push(context);
  const page = await context.newPage();
  await page.goto(address);
  return page;
}

async function continueAs(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Continue with this machine" }).click();
  await page.getByRole("link", { name: `Continue as ${name}` }).click();
  await rail(page).waitFor();
}

async function signUp(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "No account yet: sign up" }).click();
  await continueAs(page, name);
}

const consoleOf = (region: "eu" | "us"): string => `${regions[region].url}console/`;

it("a person signs up, makes a key, asks, invites, changes and removes, and is forgotten", async () => {
  const ann = await open(consoleOf("eu"));
  await expectAccessible(ann);
  await signUp(ann, "Ann");
  await goTo(ann, "Keys");
  await ann.getByRole("button", { name: "New key" }).first().click();
  await ann.getByLabel("Name").fill("Ann's");
  await ann.getByRole("button", { name: "Create key" }).click();
  const key = (await ann.locator(".secret code").textContent()) ?? "";
  expect(key).toMatch(/^svc_sk_eu_live_/);
  const asked = await fetch(`${regions.eu.url}v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] }),
  });
  expect([asked.status, (await asked.text()).includes("Hello")]).toEqual([200, true]);
  await ann.reload();
  await rail(ann).waitFor();

  await goTo(ann, "Team");
  await expectAccessible(ann);
  await ann.getByRole("button", { name: "Invite" }).click();
  await ann.getByLabel("Address").fill("ben@example.test");
  await ann.getByRole("button", { name: "Make the link" }).click();
  const link = (await ann.locator(".secret code").textContent()) ?? "";
  const ben = await open(link);
  await ben.getByText("invites you to").waitFor();
  await expectAccessible(ben);
  await continueAs(ben, "Ben");
  expect(await rail(ben).getByRole("link", { name: "Activity" }).count()).toBe(0);

  await ann.reload();
  await goTo(ann, "Team");
  await ann.getByRole("button", { name: "Add a domain" }).click();
  await ann.getByRole("textbox", { name: "Domain" }).fill("acme.example.org");
  await ann.getByRole("button", { name: "Add it" }).click();
  await ann.getByText("_turnpike-challenge.acme.example.org").waitFor();
  await expectAccessible(ann);
  await ann.getByLabel("Role of Ben").selectOption("admin");
  await expect.poll(() => roleOf(ben)).toBe("admin");
  await ann.getByRole("row", { name: /Ben/ }).getByRole("button", { name: "Remove…" }).click();
  await ann.getByRole("button", { name: "Remove Ben" }).click();
  await expect.poll(() => roleOf(ben)).toBe(401);

  const us = await open(consoleOf("us"));
  await signUp(us, "Ann");
  await goTo(us, "Profile");
  await expectAccessible(us);
  await us.getByText("In the EU").first().waitFor();

  await goTo(ann, "Profile");
  await ann.getByRole("button", { name: "Delete account…" }).click();
  await ann.getByRole("button", { name: "Delete it" }).click();
  await ann.getByText("Your account in this region is deleted.").waitFor();
  expect(await roleOf(us)).toBe("owner");
});

/** What the page's session is, or why it is none. */
function roleOf(page: Page): Promise<unknown> {
  return page.evaluate(async () => {
    const answer = await fetch("/console/api/session");
    return answer.status === 200 ? ((await answer.json()) as { role: string }).role : answer.status;
  });
}
