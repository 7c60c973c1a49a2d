import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bundleWorker } from "../../scripts/bundle.ts";
import { serveIssuer } from "../../scripts/dev-issuer.ts";
import type { ServedIssuer } from "../../scripts/dev-issuer.ts";
import { servePayments } from "../../scripts/dev-payments.ts";
import type { LocalPayments } from "../../scripts/dev-payments.ts";
import { freePort } from "../../scripts/ports.ts";
import { startRegion } from "../../scripts/region.ts";
import type { Region } from "../../scripts/region.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { goTo, launchBrowser, openPage, navigation } from "./browser.ts";
import { continueAs, signUp } from "./started-gateway.ts";

// The region is at 127.0.0.1 and the identity providers at localhost. They are different sites, so
// SameSite applies.
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-cross-site-"));
const company = { id: "company-ann", name: "Company Ann", email: "ann@acme.example.org" };
let region: Region;
let browser: Browser;
let issuer: ServedIssuer;
let companyIssuer: ServedIssuer;
let payments: LocalPayments;
let origin: string;
let minutes = 0;

beforeAll(async () => {
  issuer = await serveIssuer(0, [
    ...["Ann", "Second Ann", "Ben", "Eve", "Zoe"].map((name) => {
      const id = name.toLowerCase().replace(" ", "-");
      return { id, name, email: `${id}@example.test`, isVerified: true };
    }),
  ]);
  companyIssuer = await serveIssuer(0, [{ ...company, isVerified: true }]);
  const [port, elsewhere, paymentsPort] = await Promise.all([freePort(), freePort(), freePort()]);
  origin = `http://127.0.0.1:${port}`;
  payments = await servePayments(directory, paymentsPort, { eu: port, us: elsewhere });
  region = await startRegion({
    region: "eu",
    port,
    peers: [],
    code: await bundleWorker(false, path.join(import.meta.dirname, "../workers/later.ts")),
    hasSite: true,
    bindings: payments.bindingsOf("eu", {
      KEY_SECRETS: `a:${"k".repeat(32)}`,
      ADMIN_TOKEN,
      SANDBOX: "on",
      COMPANY_DOMAINS: "on",
      ...issuer.bindings,
    }),
  });
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  await region?.miniflare.dispose();
  issuer?.close();
  companyIssuer?.close();
  payments?.stripe.close();
  removeDirectory(directory);
});

/** Moves the clocks of the region and the identity providers. */
async function waitMinutes(count: number): Promise<void> {
  minutes += count;
  const moved = await fetch(`${origin}/v1/__test/later?minutes=${count}`, { method: "POST" });
  expect(moved.status).toBe(204);
  const shift = minutes * 60;
  for (const { issuer: one } of [issuer, companyIssuer]) {
    one.bend = {
      claims: (claims) => ({
        ...claims,
        ...Object.fromEntries(
          ["iat", "exp", "auth_time"].map((name) => [name, Number(claims[name]) + shift]),
        ),
      }),
    };
  }
}

const open = async (at = "/console/"): Promise<Page> =>
  (await openPage(browser, new URL(at, origin).href)).page;

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Signs up a person with an organization whose session is older than ten minutes. */
async function openOldSession(name: string): Promise<Page> {
  const page = await open();
  await signUp(page, name);
  await waitMinutes(11); // a login counts as fresh for ten minutes
  return page;
}

/** Confirms the login in the new tab that the dialog opens. */
async function confirmAs(page: Page, name: string): Promise<void> {
  const opened = page.context().waitForEvent("page");
  await press(page, "Continue with this machine");
  const tab = await opened;
  await tab.getByRole("link", { name: `Continue as ${name}`, exact: true }).click();
}

/** Fills in the form of a new key. */
async function startKey(page: Page, name: string): Promise<void> {
  await goTo(page, "Keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name").fill(name);
}

const finishKey = (page: Page): Promise<void> =>
  page.getByRole("dialog").first().getByRole("button", { name: "Create key" }).click();

const current = (page: Page, name: string) =>
  page.locator("a[aria-current=page]", { hasText: new RegExp(`^${name}$`) });

const identities = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const answer = await fetch("/console/api/people/me");
    return ((await answer.json()) as { identities: unknown[] }).identities.length;
  });

it("a login after a sign-up works, and each login ends the earlier session", async () => {
  const page = await open();
  await signUp(page, "Ann");
  await press(page, "Log out");
  await continueAs(page, "Ann");
  await page.reload();
  await navigation(page).waitFor();
});

it("an interrupted change completes after a new login, and the form keeps the entered values", async () => {
  const page = await openOldSession("Ann");
  await startKey(page, "after a while");
  await finishKey(page);
  await page.getByText("creating a key needs a login from the last ten minutes").waitFor();
  await confirmAs(page, "Eve");
  await page.getByText("belongs to another account").waitFor();
  await confirmAs(page, "Ann");
  await page.locator(".secret code").waitFor();
  await page.reload();
  await page.getByText("after a while").first().waitFor();
});

it("a form keeps the entered values if the person cancels the new login", async () => {
  const page = await openOldSession("Ann");
  await startKey(page, "never made");
  const expires = page.locator("input[type=datetime-local]");
  await expires.fill("2020-01-01T00:00");
  await finishKey(page); // the browser reports the invalid time before a login is required
  expect(await expires.evaluate((field: HTMLInputElement) => field.validity.valid)).toBe(false);
  expect(await page.getByText("Confirm it's you:").count()).toBe(0);
  await expires.fill("");
  await finishKey(page);
  await page.getByText("Confirm it's you:").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("This change requires a login within the last ten minutes").waitFor();
  expect(await page.getByLabel("Name").inputValue()).toBe("never made");
});

it("a person with an old session can connect a second account after logging in again", async () => {
  const page = await openOldSession("Ann");
  const before = await identities(page);
  await goTo(page, "Profile");
  await press(page, "Connect this machine");
  await confirmAs(page, "Ann");
  await page.getByRole("link", { name: "Continue as Second Ann" }).click();
  await page.getByRole("heading", { level: 1, name: "Profile" }).waitFor();
  expect(await identities(page)).toBe(before + 1);
});

it("the profile page shows why an account could not be connected", async () => {
  const ben = await open();
  await signUp(ben, "Ben");
  const page = await openOldSession("Eve");
  await goTo(page, "Profile");
  await press(page, "Connect this machine");
  await confirmAs(page, "Eve");
  await page.getByRole("link", { name: "Continue as Ben" }).click();
  await page.getByRole("alert").getByText("belongs to another account").waitFor();
});

it("a member with an old session can invite a person after logging in again, and the person can accept", async () => {
  const page = await openOldSession("Ann");
  await goTo(page, "Team");
  await press(page, "Invite");
  await page.getByLabel("Address").fill("ben@example.test");
  await press(page, "Create invitation");
  await page.getByText("inviting a member needs a login").waitFor();
  await confirmAs(page, "Ann");
  const link = (await page.locator(".secret code").textContent()) ?? "";
  const ben = await open(link);
  await ben.getByText("invites you to").waitFor();
  await continueAs(ben, "Ben");
  await ben.getByText(/^● You joined .+ as member\.$/).waitFor();
  await ben.reload();
  await navigation(ben).waitFor();
  await goTo(ben, "Keys");
  expect(await ben.getByText("You joined").count()).toBe(0);
  const late = await open(link);
  await late.getByText("was used, canceled or has expired").waitFor();
});

it("the console returns to the requested address after a login, even if an earlier login was declined", async () => {
  const page = await open("/console/#/keys?tab=sessions&why=denied");
  await page.getByText(/was declined/).waitFor();
  await continueAs(page, "Ann");
  await current(page, "Sessions").waitFor();
  expect(page.url()).toMatch(/#\/keys\?tab=sessions$/);
});

it("the login page offers sign-up to people without an account", async () => {
  const page = await open();
  await press(page, "Continue with this machine");
  await page.getByRole("link", { name: "Continue as Zoe", exact: true }).click();
  await page
    .getByRole("status")
    .getByText(/^No account for zoe@\S+ in the EU\./i)
    .waitFor();
  await press(page, "Create account");
  await page.getByText(/^No account for/i).waitFor({ state: "detached" });
  await page.reload();
  await signUp(page, "Zoe");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(page.url()).not.toContain("why");
});

it("the login page reports an expired login, and remembers the requested address", async () => {
  const page = await open("/console/#/team");
  await press(page, "Continue with this machine");
  await page.getByRole("link", { name: "Continue as Ann", exact: true }).waitFor();
  await waitMinutes(11);
  await page.getByRole("link", { name: "Continue as Ann", exact: true }).click();
  await page.getByRole("status").getByText("This login took longer than ten minutes").waitFor();
  await continueAs(page, "Ann");
  await page.getByRole("heading", { level: 1, name: "Team" }).waitFor();
});

it("the console shows a new key in both open tabs, and a logout in one tab applies to both", async () => {
  const page = await open();
  await continueAs(page, "Ann");
  await goTo(page, "Keys");
  const other = await page.context().newPage();
  await other.goto(`${origin}/console/#/keys`);
  await navigation(other).waitFor();
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name").fill("of the first tab");
  await finishKey(page);
  await page.locator(".secret code").waitFor();
  await other.getByText("of the first tab").waitFor();
  await press(other, "Log out");
  await page.reload();
  await page.getByRole("button", { name: "Continue with this machine" }).waitFor();
});

it("the console keeps the tab, filter and open dialog after a reload, and Back undoes each change", async () => {
  const page = await open();
  await continueAs(page, "Ann");
  await goTo(page, "Keys");
  await page.getByLabel("Filter").fill("first tab");
  await page.getByText("of the first tab").click();
  await page.getByRole("dialog", { name: "of the first tab" }).waitFor();
  await page.reload();
  await page.getByRole("dialog", { name: "of the first tab" }).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.getByLabel("Filter").inputValue()).toBe("first tab");
  await goTo(page, "Requests");
  await page.getByRole("link", { name: "Errors", exact: true }).click();
  await page.reload();
  await current(page, "Errors").waitFor();
  await page.goBack();
  await current(page, "All").waitFor();
});

it("a person with an old session can buy credits after logging in again", async () => {
  const page = await openOldSession("Ann");
  await goTo(page, "Credits");
  await press(page, "Pay $10.00");
  await page.getByText("buying credits needs a login").waitFor();
  await confirmAs(page, "Ann");
  await press(page, "Pay");
  await page.locator(".notice", { hasText: "$10.00 was added" }).waitFor();
});

it("a person can connect an account of the company's own identity provider", async () => {
  const page = await openOldSession("Ann");
  const { id } = await page.evaluate(async () => {
    const answer = await fetch("/console/api/session");
    return ((await answer.json()) as { organization: { id: string } }).organization;
  });
  const book = await region.miniflare.getD1Database("DB", "turnpike-eu");
  await book.prepare("UPDATE organizations SET is_personal = 0 WHERE id = ?").bind(id).run();
  await book
    .prepare(
      `INSERT INTO company_domains (domain, org_id, nonce, created_at, proven_at, approved_at, checked_at)
       VALUES ('acme.example.org', ?1, 'n', ?2, ?2, ?2, ?2)`,
    )
    .bind(id, Date.now())
    .run();
  await page.reload();
  await navigation(page).waitFor();
  await goTo(page, "Team");
  await press(page, "Add an identity provider");
  await page.getByLabel("Issuer URL, as in the discovery document").fill(companyIssuer.url);
  await page.getByLabel("Client ID").fill("turnpike-local");
  await page.getByLabel("Client secret").fill(issuer.bindings["LOCAL_LOGIN_SECRET"] ?? "");
  await press(page, "Add provider");
  await confirmAs(page, "Ann");
  await press(page, "Connect your account");
  await page.getByRole("link", { name: "Continue as Company Ann" }).click();
  await page.getByRole("button", { name: "Require company login" }).waitFor();
});

it("an invitation is rejected after a week", async () => {
  const page = await open();
  await continueAs(page, "Ann");
  await goTo(page, "Team");
  await press(page, "Invite");
  await page.getByLabel("Address").fill("eve@example.test");
  await press(page, "Create invitation");
  const link = (await page.locator(".secret code").textContent()) ?? "";
  await waitMinutes(8 * 24 * 60);
  const eve = await open(link);
  await eve.getByText("was used, canceled or has expired").waitFor();
});

it("a change in an ended session completes only after a new login to the same account", async () => {
  await signUp(await open(), "Eve");
  const page = await open();
  await signUp(page, "Ann");
  await startKey(page, "after the end");
  await page.context().clearCookies();
  await finishKey(page);
  await page.getByText("because you logged out or your access was revoked").waitFor();
  await confirmAs(page, "Ann");
  await page.locator(".secret code").waitFor();
  await page.context().clearCookies();
  await page.goto(`${origin}/console/#/requests`);
  await page.getByRole("dialog", { name: "Log in again" }).waitFor();
  await confirmAs(page, "Eve");
  await page.getByText("Eve, owner").waitFor(); // the page was reloaded
});

it("a change in a tab that shows another organization applies to the organization that the person confirms", async () => {
  const page = await open();
  await signUp(page, "Eve");
  await startKey(page, "of the first organization");
  await page.route(
    // Only writes are sent, so that no read triggers the login before the click.
    /\/(?:balance|keys|pauses|members)$/,
    (route) => route.request().method() === "POST" && route.continue(),
  );
  const other = await page.context().newPage();
  await other.goto(`${origin}/console/#/profile`);
  await press(other, "New organization");
  await other.getByLabel("Name").fill("Second");
  await press(other, "Create organization");
  await other.getByText("Second", { exact: true }).first().waitFor();
  await finishKey(page);
  await page.getByRole("button", { name: /^Continue with / }).click();
  await page.locator(".secret code").waitFor();
  await page.unrouteAll();
  await page.reload();
  await page.getByText("of the first organization").first().waitFor();
});

it("an owner can close the organization after a warning about the lost credits, and restore it", async () => {
  const page = await open();
  await signUp(page, "Eve");
  await goTo(page, "Settings");
  await press(page, "Close organization…");
  const slug = await page.getByLabel("Slug").inputValue();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/\$\d\.00 are given up/).waitFor();
  await dialog.getByLabel(/^Type /).fill(slug);
  await dialog.getByLabel("Give up the remaining credits").check();
  await press(page, "Close organization");
  await page.getByRole("status").getByText("To restore it within 7 days").waitFor();
  await signUp(page, "Eve");
  await page.goto(`${origin}/console/#/profile`);
  await page.getByRole("button", { name: /^Restore / }).click();
  await page.locator(".organization", { hasText: /^Eve$/ }).waitFor();
  await goTo(page, "Settings");
  expect(await page.getByLabel("Slug").inputValue()).toBe(slug);
});

it("the console hides its pages after 12 hours, shows the reason, and completes the interrupted change after a login", async () => {
  const page = await open();
  await signUp(page, "Ann");
  await goTo(page, "Settings");
  await page.getByRole("button", { name: "Create budget" }).click();
  await page
    .getByRole("dialog")
    .getByLabel(/^Limit/)
    .fill("7");
  await waitMinutes(12 * 60);
  await page.clock.setSystemTime(Date.now() + minutes * 60_000);
  await page.getByText("This session has ended, because 12 hours have passed.").waitFor();
  expect(await page.locator("main").isVisible()).toBe(false);
  await confirmAs(page, "Ann");
  await page.getByRole("button", { name: "Create budget" }).last().click();
  await page.locator(".budget").filter({ hasText: "of $7.00" }).waitFor();
});
