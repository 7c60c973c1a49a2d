import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { goTo, navigation } from "./browser.ts";
import { pressAll } from "./button-presses.ts";
import { continueAs, openStarted, signUp } from "./started-gateway.ts";

const started = openStarted();
/** Buttons that end the session or lead to a page of another program. */
const ENDING = ["Log out everywhere", "Connect this machine"];

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Creates a person who left an organization and has none now. */
async function leaver(name: string): Promise<Page> {
  const owner = await started.open("/console/");
  await signUp(owner, "Cleo");
  await goTo(owner, "Team");
  await press(owner, "Invite");
  await owner.getByLabel("Address").fill(`${name.toLowerCase()}@example.test`);
  await press(owner, "Create invitation");
  const link = (await owner.locator(".secret code").textContent()) ?? "";
  const page = await started.open(link);
  await continueAs(page, name);
  await goTo(page, "Team");
  await press(page, "Leave…");
  await press(page, `Remove ${name}`);
  await continueAs(page, name);
  return page;
}

it("pressing every button as a person without an organization causes no charge", async () => {
  const page = await leaver("Ben");
  expect(await navigation(page).getByRole("link").allTextContents()).toEqual([
    "Turnpike",
    "Profile",
  ]);
  for (const by of ["keyboard", "mouse"] as const) {
    const { pressed, paid } = await pressAll(page, {
      by,
      without: [...ENDING, "Delete account", "Create organization"],
    });
    expect(pressed).toEqual(
      expect.arrayContaining([
        "Profile: Export",
        "Profile: New organization",
        "Profile: New organization: Cancel",
        "Profile: Delete your account in this region?: Cancel",
      ]),
    );
    expect(paid).toEqual([]);
  }
  await page.reload();
  await press(page, "Log out everywhere");
  await continueAs(page, "Ben");
  await press(page, "New organization");
  await page.getByRole("dialog").getByLabel("Name").fill("Made by a press");
  await press(page, "Create organization");
  await goTo(page, "Profile");
  await press(page, "Delete account…");
  await page.getByLabel("Give up the credits of closed organizations").check();
  await press(page, "Delete account");
  await page.getByText("Your account in this region is deleted.").waitFor();
});
