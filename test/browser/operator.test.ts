import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { logIn, openWindow } from "./browser.ts";

const browser = openWindow();
let orgId: string;

beforeAll(async () => {
  ({ orgId } = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN));
});

it("a slip of the hand at a key's limit is refused at its field, and what is saved is what was changed", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  const sent: unknown[] = [];
  page.on("request", (request) => {
    if (request.method() === "PATCH") sent.push(request.postDataJSON());
  });
  await page.goto(`/console/#/organizations/${orgId}`);
  const dialog = page.getByRole("dialog");
  const tokens = dialog.getByLabel("Token limit, per 60 s");
  const save = dialog.getByRole("button", { name: "Save" });
  await page.getByRole("button", { name: "Limits…" }).click();
  await tokens.fill("5000");
  await save.click();
  await dialog.waitFor({ state: "detached" });
  expect(sent).toEqual([{ tpm_limit: 5000 }]);
  await page.reload();
  await page.getByRole("button", { name: "Limits…" }).click();
  expect(await tokens.inputValue()).toBe("5000");
  await tokens.clear();
  await tokens.pressSequentially("5-000");
  await save.click();
  expect(await tokens.evaluate((field: HTMLInputElement) => field.validity.badInput)).toBe(true);
  expect(await dialog.count()).toBe(1);
  await tokens.fill("5000");
  await dialog.getByLabel("Rate limit, per 60 s").fill("900");
  await save.click();
  await dialog.waitFor({ state: "detached" });
  expect(sent.slice(1)).toEqual([{ rpm_limit: 900 }]);
  expect(page.faults).toEqual([]);
});
