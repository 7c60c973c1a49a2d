import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { expectAccessible, goTo, logIn, openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

/** What people come for, each within its number of actions: a click, a field, a choice, a key. */
const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };

beforeAll(async () => {
  const url = `${browser.origin}/admin/v1`;
  owner = await makeOrganization(url, ADMIN_TOKEN, { rpmLimit: 1000 });
});

async function ask(key: string, fields: object = {}): Promise<Response> {
  return fetch(`${browser.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "Hello" }],
      ...fields,
    }),
  });
}

/** Counts what is done on a page. */
function counted(page: WatchedPage) {
  let actions = 0;
  return {
    page,
    act: async (what: (page: WatchedPage) => Promise<unknown>): Promise<void> => {
      actions++;
      await what(page);
    },
    spent: () => actions,
  };
}

it("an error's id says which request it was, why, and that nothing was charged: 3 actions", async () => {
  await ask(owner.key);
  const refused = await ask(owner.key, { model: "nope/none" });
  expect(refused.status).toBe(404);
  const id = refused.headers.get("x-request-id") ?? "";
  const job = counted(await logIn(browser, owner.key));
  await job.act((page) => goTo(page, "Requests"));
  await job.act((page) => page.getByLabel("Request's id").fill(id));
  await job.act((page) => page.keyboard.press("Enter"));
  const bill = job.page.getByRole("dialog");
  await bill.getByText("Refused: The model 'nope/none' does not exist").waitFor();
  expect(await bill.textContent()).toContain("Nothing was charged.");
  expect(await bill.textContent()).toContain(id);
  await expectAccessible(job.page);
  await job.page.reload();
  await bill.getByText("Refused: The model 'nope/none' does not exist").waitFor();
  expect(job.page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(3);
});

it("what failed today is counted by its code, and a code is a filter that Back takes away", async () => {
  await ask(owner.key, { model: "nope/none" });
  const page = await logIn(browser, owner.key);
  await goTo(page, "Requests");
  await page.getByRole("link", { name: "Errors" }).click();
  const code = page.getByRole("button", { name: "model_not_found" });
  await code.click();
  await page.waitForURL(/code=model_not_found/);
  await page.getByRole("row", { name: "model_not_found" }).first().waitFor();
  await page.goBack();
  await page.waitForURL(/status=error(?!.*code)/);
  expect(page.faults).toEqual([]);
});

it("activity: which models one end user used, in two actions; hours, sums, and Back undoes each step", async () => {
  for (const user of ["ann", "bob"]) expect((await ask(owner.key, { user })).status).toBe(200);
  const page = await logIn(browser, owner.key);
  await page.goto("/console/#/activity?range=1&split=user");
  await page.getByText("on average").waitFor();
  const job = counted(page);
  await job.act(() => page.getByRole("cell", { name: "ann" }).click());
  await page.waitForURL(/user=ann/);
  await job.act(() => page.getByLabel("Split").selectOption("model"));
  await page.getByRole("button", { name: "ann ✕" }).waitFor();
  await page.getByRole("row", { name: /echo/ }).first().waitFor();
  await page.getByText("in 1 request").waitFor();
  await expectAccessible(page);
  await page.goBack();
  await page.waitForURL(/split=user.*user=ann|user=ann.*split=user/);
  await page.goBack();
  await page.waitForURL(/(?!.*user=ann)split=user/);
  expect(page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(2);
});

it("a choice made before the browser told of the last step goes on from that step", async () => {
  const page = await logIn(browser, owner.key);
  await page.goto("/console/#/activity?range=1&split=user");
  await page.getByText("on average").waitFor();
  await page.getByRole("cell", { name: "ann" }).waitFor();
  await page.evaluate(() => {
    [...document.querySelectorAll("td")].find((cell) => cell.textContent.trim() === "ann")?.click();
    const split = document.querySelector<HTMLSelectElement>("[aria-label=Split]");
    if (split) split.value = "provider";
    split?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await page.getByRole("button", { name: "ann ✕" }).waitFor();
  await page.waitForURL(/split=provider.*user=ann|user=ann.*split=provider/);
  expect(page.faults).toEqual([]);
});
