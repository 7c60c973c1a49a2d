import { readFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { expectAccessible, goTo, PHONE, navigation } from "./browser.ts";
import { openStarted, signUp } from "./started-gateway.ts";

const { directory, open, origins } = openStarted();

/** Signs up a person with an organization and the sign-up credits. */
async function newcomer(name: string): Promise<Page> {
  const page = await open("/console/");
  await signUp(page, name);
  return page;
}

/** Opens the console by a login link with a key or an operator's token. */
async function logIn(secret: string, look?: object): Promise<Page> {
  const page = await open(`/console/#key=${secret}`, look);
  await press(page, "Log in with this key");
  await navigation(page).waitFor();
  return page;
}

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();
const notice = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator(".notice", { hasText: text }).waitFor();
const rows = (page: Page, text: string | RegExp): Promise<number> =>
  page.getByRole("row", { name: text }).count();
/** Calls the API with the page's session, or as the operator. */
async function call(page: Page, method: string, at: string, body?: object): Promise<unknown> {
  return page.evaluate(
    async ([how, where, what]) => {
      const headers = { "content-type": "application/json" };
      const init = { method: how, headers, ...(what !== null && { body: what }) };
      return (await fetch(`/console/api${where}`, init)).json() as Promise<unknown>;
    },
    [method, at, body === undefined ? null : JSON.stringify(body)] as const,
  );
}

/** Sets the behavior of the saved card's bank. */
async function cardWill(page: Page, what: string): Promise<void> {
  await press(page, "Cards and invoices");
  await page.getByRole("heading", { name: "Your cards and invoices" }).waitFor();
  await press(page, what);
  await page.getByRole("link", { name: "Back to the shop" }).click();
  await navigation(page).waitFor();
  await goTo(page, "Credits");
}

async function runPrompt(page: Page): Promise<void> {
  await goTo(page, "Playground");
  await page.getByLabel("Model").selectOption("sandbox/echo");
  await page.getByLabel("User").fill("four words of text");
  await press(page, "Run");
}

it("the Credits page sells $10 in two clicks, saves a card, and tops up until the bank declines the card", async () => {
  const ann = await newcomer("Ann");
  await goTo(ann, "Credits");
  await expectAccessible(ann);
  await press(ann, "Pay $10.00");
  await press(ann, "Pay");
  await notice(ann, "$10.00 was added");
  await expect.poll(() => rows(ann, /payment page.*paid/)).toBe(1);
  await ann.getByText("$10.00 from payments, $1.00 from the operator, $11.00 in all.").waitFor();
  const paid = ann.getByRole("row", { name: /payment page.*paid/ });
  await paid.getByRole("button", { name: "Open invoices" }).waitFor();
  await ann.getByRole("row", { name: /payment page.*(?<!not )paid/ }).click();
  const bill = ann.getByRole("dialog", { name: "Purchase of $10.00" });
  await bill.getByText("The invoice of this purchase is under Cards and invoices.").waitFor();
  await expectAccessible(ann);
  await ann.keyboard.press("Escape");
  await ann.locator(".card", { hasText: "$11.00" }).waitFor();
  await ann.getByText("First buy credits and check").waitFor();

  await ann.getByLabel("Save the card for later payments").check();
  await press(ann, "$25");
  await press(ann, "Pay $25.00");
  await press(ann, "Decline");
  await ann.getByRole("alert").getByText("Try another card").waitFor();
  await press(ann, "Bank asks first");
  await press(ann, "It is me");
  await notice(ann, "$25.00 was added");
  await expect.poll(() => rows(ann, /payment page.*paid/)).toBe(2);

  await press(ann, "Turn on…");
  await ann.getByLabel("When the balance falls below [$]").fill("36");
  await ann.getByLabel("Amount [$]").fill("10");
  await ann.getByLabel("Monthly maximum [$]").fill("40");
  await press(ann, "Turn on");
  await ann
    .getByText("If less than $36 is left, $10 of credits are bought with the saved card.")
    .waitFor();
  await expectAccessible(ann);
  await runPrompt(ann);
  await ann.locator("dt", { hasText: "Cost" }).waitFor();
  await goTo(ann, "Credits");
  await expect.poll(() => rows(ann, /automatic.*paid/)).toBe(1);
  await ann.locator(".card", { hasText: "$45.99" }).waitFor();

  await cardWill(ann, "Ask its customer first");
  await press(ann, "Pay $10.00");
  await notice(ann, "10 dollars need your confirmation at your bank.");
  await ann.getByRole("link", { name: "Confirm with your bank" }).click();
  await press(ann, "It is me: pay");
  await ann.getByRole("heading", { name: /is paid$/ }).waitFor();
  await ann.goto(`${origins.eu}/console/#/credits`);
  await expect.poll(() => rows(ann, /kept card.*paid/)).toBe(1);

  await cardWill(ann, "Decline: lost");
  await press(ann, "Change…");
  await ann.getByLabel("When the balance falls below [$]").fill("56");
  await press(ann, "Turn on");
  await ann.getByText("It is off: the bank no longer accepts the card").waitFor();
  await expect.poll(() => rows(ann, /automatic.*declined/)).toBe(1);
  await press(ann, "Pay $10.00");
  await notice(ann, /10 dollars were not paid.*Use another card/);
  await expectAccessible(ann);
});

it("the Credits page charges nothing for a canceled payment, and explains that a refund blocks spending", async () => {
  const ben = await newcomer("Ben");
  await goTo(ben, "Credits");
  await press(ben, "Pay $10.00");
  await press(ben, "Leave");
  await notice(ben, "10 dollars need your confirmation");
  await press(ben, "Cancel purchase");
  await notice(ben, "10 dollars were not paid. Nothing was charged.");
  expect(await rows(ben, /payment page.*(?<!not )paid/)).toBe(0);

  await ben.getByRole("button", { name: "Pay $10.00" }).dblclick();
  await ben.getByRole("heading", { name: "Pay $10.00" }).waitFor();
  await press(ben, "Pay");
  await notice(ben, "$10.00 was added");
  await expect.poll(() => rows(ben, /payment page/)).toBe(2);

  // The operator removes the bought credits, as if they were spent.
  const { organization } = (await call(ben, "GET", "/session")) as { organization: { id: string } };
  const { admin_token: token } = JSON.parse(
    readFileSync(path.join(directory, "demo.json"), "utf8"),
  ) as { admin_token: string };
  await fetch(`${origins.eu}/admin/v1/orgs/${organization.id}/credits`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ amount_micro: -8_000_000, reference: "spent" }),
  });
  const operator = await logIn(token);
  await operator.goto(`${origins.eu}/console/#/organizations/${organization.id}`);
  await operator.getByRole("row", { name: /payment page.*(?<!not )paid/ }).click();
  await press(operator, "Refund…");
  await operator.getByRole("button", { name: /^Refund \$/ }).click();
  await ben.locator(".notice", { hasText: "$7.00 are owed" }).waitFor();
  await expect.poll(() => rows(ben, /payment page.*refunded.*\$10\.00.*\$10\.00/)).toBe(1);
  await ben.getByText("Removed: a payment was refunded or disputed").waitFor();
  expect(await ben.locator("main").innerText()).not.toContain("owed:");
  await expectAccessible(ben);
  await runPrompt(ben);
  await ben.getByRole("alert").getByText("You owe credits after a refund or dispute").waitFor();

  await operator.getByText("$7.00 owed").waitFor();
  await expectAccessible(operator);
  await press(operator, "Write off…");
  await operator.getByLabel("Reference").fill("kindness");
  await operator.getByRole("button", { name: /^Write off \$/ }).click();
  await operator.getByText("$7.00 owed").waitFor({ state: "detached" });
});

it("the Credits page shows a member the balance and a contact, but no purchase button, even on a phone", async () => {
  const { eu, admin_token: token } = JSON.parse(
    readFileSync(path.join(directory, "demo.json"), "utf8"),
  ) as { eu: { org_id: string }; admin_token: string };
  const admin = async (at: string, body: object): Promise<Record<string, string>> => {
    const response = await fetch(`${origins.eu}/admin/v1/orgs/${eu.org_id}${at}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, string>;
  };
  const { id } = await admin("/members", { email: "dan@example.test", role: "member" });
  const { key } = await admin(`/members/${id}/keys`, { name: "Dan's" });
  const page = await logIn(key ?? "", PHONE);
  await page.goto(`${origins.eu}/console/#/credits`);
  await page.getByText("Owners, admins and billing members add credits here").waitFor();
  expect(await page.locator("main button").count()).toBe(0);
  await expectAccessible(page);
});
