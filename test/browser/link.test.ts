import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { logIn, openWindow, navigation } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const browser = openWindow();
type Made = Awaited<ReturnType<typeof makeOrganization>> & { readonly name: string };
let own: Made;
let another: Made;

beforeAll(async () => {
  own = await organization();
  another = await organization();
});

async function organization(): Promise<Made> {
  const organization = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN);
  const response = await fetch(`${browser.origin}/v1/orgs/${organization.orgId}`, {
    headers: { authorization: `Bearer ${organization.key}` },
  });
  return { ...organization, name: ((await response.json()) as { name: string }).name };
}

const organizationOf = (page: WatchedPage) => page.locator(".top .organization").textContent();
const follow = (page: WatchedPage, key: string) =>
  page.evaluate((hash) => (location.hash = hash), `#key=${key}`);

it.each([
  ["opened", (page: WatchedPage, key: string) => page.goto(`/console/?again#key=${key}`)],
  ["pasted into the open page", follow],
])(
  "a login link that is %s asks for confirmation before it replaces the current login",
  async (_, bring) => {
    const page = await logIn(browser, own.key);
    await bring(page, another.key);
    const dialog = page.getByRole("dialog");
    await dialog.getByText(another.name).waitFor();
    expect(page.url()).not.toContain("key=");
    expect(await dialog.textContent()).toContain(own.name);
    expect(await organizationOf(page)).toBe(own.name);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.reload();
    await navigation(page).waitFor();
    expect(await organizationOf(page)).toBe(own.name);
    expect(await page.getByRole("dialog").count()).toBe(0);

    await bring(page, another.key);
    await page.getByRole("dialog").getByText(another.name).waitFor();
    await page.getByRole("button", { name: "Log in with this key" }).click();
    await expect.poll(() => organizationOf(page)).toBe(another.name);
    expect(page.url()).not.toContain("key=");
    expect(page.faults).toEqual([]);
  },
);

it("a login link's key disappears from the address immediately, and starts a session after a confirmation", async () => {
  const page = await browser.open("/console/");
  await page.getByLabel("API key or operator's token").waitFor();
  await follow(page, own.key);
  await page.getByRole("dialog").getByText(own.name).waitFor();
  expect(await navigation(page).count()).toBe(0); // anyone can send a link, so it asks first
  await page.getByRole("button", { name: "Log in with this key" }).click();
  await navigation(page).waitFor();
  expect(page.url()).not.toContain("key=");
  expect(await organizationOf(page)).toBe(own.name);
});

it("a login link with an invalid key shows an error, and the key disappears from the address", async () => {
  const page = await browser.open("/console/#key=svc_sk_eu_live_none");
  await page.getByRole("dialog").getByText("no organization").waitFor();
  await page.getByRole("button", { name: "Log in with this key" }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  expect(page.url()).not.toContain("key=");
  expect(await page.context().cookies()).toEqual([]);
});
