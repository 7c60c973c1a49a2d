import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { expectAccessible, goTo, PHONE, navigation, pageLoaded } from "./browser.ts";
import { readDemo } from "../../scripts/dev-demo.ts";
import { continueAs, openStarted, signUp } from "./started-gateway.ts";

const started = openStarted();

/** Returns the page's session, or the reason why there is none. */
function roleOf(page: Page): Promise<unknown> {
  return page.evaluate(async () => {
    const answer = await fetch("/console/api/session");
    return answer.status === 200 ? ((await answer.json()) as { role: string }).role : answer.status;
  });
}

function organizationOf(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const answer = await fetch("/console/api/session");
    return ((await answer.json()) as { organization: { id: string } }).organization.id;
  });
}

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Checks the drawn page with axe. */
async function expectReadable(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor();
  await pageLoaded(page);
  await expectAccessible(page);
}

/** Creates a key and sends a request with it. */
async function makesKeyAndAsks(page: Page): Promise<void> {
  await goTo(page, "Keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name").fill("Ann's");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const key = (await page.locator(".secret code").textContent()) ?? "";
  expect(key).toMatch(/^svc_sk_eu_live_/);
  const response = await fetch(`${started.origins.eu}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] }),
  });
  expect([response.status, (await response.text()).includes("Hello")]).toEqual([200, true]);
  await page.reload();
  await navigation(page).waitFor();
}

/** Creates an invitation for an address, and returns its link. */
async function invite(page: Page, email: string): Promise<string> {
  await goTo(page, "Team");
  await press(page, "Invite");
  await page.getByLabel("Address").fill(email);
  await press(page, "Create invitation");
  const link = (await page.locator(".secret code").textContent()) ?? "";
  await page.reload();
  await navigation(page).waitFor();
  await goTo(page, "Team");
  return link;
}

it("the console supports sign-up, keys, members, a login in the other region and the erasure of a person", async () => {
  const ann = await started.open("/console/");
  await expectReadable(ann);
  await signUp(ann, "Ann");
  // The credits are those of the sign-up, without a purchase.
  await ann.locator(".available", { hasText: "$1.00" }).waitFor();
  await makesKeyAndAsks(ann);

  const link = await invite(ann, "ben@example.test");
  await expectReadable(ann);
  const ben = await started.open(link);
  await ben.getByText("invites you to the organization").waitFor();
  await expectReadable(ben);
  await continueAs(ben, "Ben");
  expect(await navigation(ben).getByRole("link", { name: "Activity" }).count()).toBe(0);
  await press(ann, "Add a domain");
  await ann.getByRole("textbox", { name: "Domain" }).fill("acme.example.org");
  await press(ann, "Add domain");
  await ann.getByText("_turnpike-challenge.acme.example.org").waitFor();
  await expectReadable(ann);
  await ann.getByLabel("Role of Ben").selectOption("admin");
  await expect.poll(() => roleOf(ben)).toBe("admin");
  await ben.reload();
  await navigation(ben).getByRole("link", { name: "Activity" }).waitFor(); // admins see this row

  await ann.getByRole("row", { name: /Ben/ }).getByRole("button", { name: "Remove…" }).click();
  await goTo(ben, "Playground");
  await ben.getByLabel("Model").selectOption("sandbox/slow-stream");
  await ben.getByLabel("User").fill("word ".repeat(60));
  const response = ben.waitForResponse(/\/v1\/chat\/completions$/);
  await press(ben, "Run");
  const stream = await response;
  await ben.locator(".answer", { hasText: "word word" }).waitFor();
  let hasEnded = false;
  const ended = stream.finished().then((fault) => {
    hasEnded = true;
    return fault;
  });
  await press(ann, "Remove Ben");
  await ann.getByRole("dialog").waitFor({ state: "detached" });
  expect(hasEnded).toBe(false);
  expect(await roleOf(ben)).toBe(401);
  // The member's page has closed.
  await ben.getByRole("button", { name: "Continue with this machine" }).waitFor();
  expect(await ended).toBeNull(); // running streams are completed
  await expect.poll(() => heldOf(ann)).toBe(0); // the completed stream is charged

  await goTo(ann, "Profile");
  await expectReadable(ann);
  await ann.getByText("In the US").getByRole("link", { name: "look there" }).click();
  await signUp(ann, "Ann");
  const far = await organizationOf(ann);
  await press(ann, "Log out");
  await continueAs(ann, "Ann");
  expect([await organizationOf(ann), await roleOf(ann)]).toEqual([far, "owner"]);
  await goTo(ann, "Profile");
  await ann.getByText("In the EU").getByRole("link", { name: "look there" }).click();
  await navigation(ann).waitFor(); // cookies are per region, so this login remains

  await goTo(ann, "Profile");
  await press(ann, "Delete account…");
  await ann.getByLabel("Give up the credits of closed organizations").check();
  await press(ann, "Delete account");
  await ann.getByText("Your account in this region is deleted.").waitFor();
  await press(ann, "Continue with this machine");
  await ann.getByRole("link", { name: "Continue as Ann" }).click();
  await ann.getByText(/^No account for ann@\S+ in the EU\./i).waitFor();
  await ann.goto(`${started.origins.us}/console/`);
  await navigation(ann).waitFor(); // the other region has its own account and organization
  expect(await organizationOf(ann)).toBe(far);
});

function heldOf(page: Page): Promise<unknown> {
  return page.evaluate(async () => {
    const answer = await fetch("/console/api/v1/balance");
    return ((await answer.json()) as { held_micro: number }).held_micro;
  });
}

/** Presses Tab until the element with this name has the focus, then presses Enter. */
async function enterAt(page: Page, name: string | RegExp, key = "Enter"): Promise<void> {
  const target = page.getByRole("button", { name }).or(page.getByRole("link", { name }));
  await target.or(page.getByLabel(name)).first().waitFor();
  for (let stops = 0; stops < 80; stops++) {
    await page.keyboard.press("Tab");
    const isThere = await target.or(page.getByLabel(name)).and(page.locator(":focus")).count();
    if (isThere === 0) continue;
    await page.keyboard.press(key);
    return;
  }
  throw new Error(`the keyboard does not come to ${String(name)}`);
}

/** Checks that nothing is wider than the phone. */
async function expectFits(page: Page): Promise<void> {
  await expectReadable(page);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(over).toBe(0);
}

it("sign-up, team, domains, invitation and profile pages work on a phone and by keyboard", async () => {
  const cleo = await started.open("/console/", PHONE);
  await expectFits(cleo);
  await enterAt(cleo, "Create account");
  await expectFits(cleo);
  await enterAt(cleo, "Continue with this machine");
  await enterAt(cleo, "Continue as Cleo");
  await navigation(cleo).waitFor();
  await enterAt(cleo, "More");
  await enterAt(cleo, "Team");
  await enterAt(cleo, "Invite");
  await cleo.getByRole("dialog").waitFor();
  await cleo.getByLabel("Address").focus(); // the dialog starts with the focus on its first field
  await expectFits(cleo);
  await cleo.keyboard.type("ann@example.test");
  // Typing selects the next role that starts with this letter: admin.
  await enterAt(cleo, "Role", "a");
  const typed = ["Address", "Role"].map((name) => cleo.getByRole("dialog").getByLabel(name));
  const values = (): Promise<unknown> => Promise.all(typed.map((field) => field.inputValue()));
  await expect.poll(values).toEqual(["ann@example.test", "admin"]);
  await enterAt(cleo, "Create invitation");
  const link = (await cleo.locator(".secret code").textContent()) ?? "";
  await expectFits(cleo);
  await cleo.reload();
  await navigation(cleo).waitFor();
  await cleo.getByRole("cell", { name: "admin", exact: true }).waitFor();
  await enterAt(cleo, "Add a domain");
  await cleo.getByRole("textbox", { name: "Domain" }).focus();
  await cleo.keyboard.type("a-very-long-name-of-a-company.example.org");
  await cleo.keyboard.press("Enter");
  await cleo.getByText("_turnpike-challenge.").waitFor();
  await expectFits(cleo);
  await enterAt(cleo, "More");
  await enterAt(cleo, "Profile");
  await cleo.getByRole("heading", { name: "Organizations" }).waitFor();
  await expectFits(cleo);
  await enterAt(cleo, "New organization");
  await cleo.getByRole("dialog").getByLabel("Name").focus();
  await expectFits(cleo);
  await cleo.keyboard.press("Escape");

  const ann = await started.open(link, PHONE);
  await ann.getByText("invites you to the organization").waitFor();
  await expectFits(ann);
  await enterAt(ann, "Continue with this machine");
  await enterAt(ann, "Continue as Ann");
  await navigation(ann).waitFor();
  await enterAt(ann, "More");
  await enterAt(ann, "Team");
  await ann.getByRole("heading", { level: 1, name: "Team" }).waitFor();
  await expectFits(ann);
  await enterAt(ann, "Leave…");
  await expectFits(ann);
  await enterAt(ann, /^Remove Ann/);
  await ann.getByRole("button", { name: "Continue with this machine" }).waitFor();
  await enterAt(cleo, "Delete account…");
  await expectFits(cleo);
  await enterAt(cleo, "Give up the credits of closed organizations", " ");
  await enterAt(cleo, /^Delete account$/);
  await cleo.getByText("Your account in this region is deleted.").waitFor();
});

it("the login page recognizes another region's key, and links to that region's console", async () => {
  const demo = readDemo(started.directory);
  const page = await started.open("/console/");
  await page.getByLabel("API key or operator's token").fill(demo?.us.regional_key ?? "");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("This key's home region is 'us'.").waitFor();
  await expectReadable(page);
  await page.getByRole("link", { name: "Open the US console" }).click();
  await page.waitForURL(`${started.origins.us}/console/**`);
});
