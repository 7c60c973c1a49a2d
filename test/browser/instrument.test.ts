import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { expectAccessible, goTo, logIn, openWindow, PHONE, pageLoaded } from "./browser.ts";

const browser = openWindow();
let key: string;
/** Time of the first requests. */
let askedAt: Date;

beforeAll(async () => {
  const organization = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN, {
    rpmLimit: 1000,
  });
  ({ key } = organization);
  askedAt = new Date();
  for (const user of ["ann", "ann", "bob"]) await sendRequest({ user });
  await sendRequest({ model: "nope/none", user: "bob" });
});

async function sendRequest(fields: object): Promise<void> {
  await fetch(`${browser.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "Hello" }],
      ...fields,
    }),
  });
}

it("the Activity page groups requests by member, or by model and end user, and shows speed and errors", async () => {
  const page = await logIn(browser, key);
  await goTo(page, "Activity");
  await page.getByLabel("Then group by").selectOption("user");
  await page.getByRole("row", { name: /echo.*ann/ }).waitFor();
  await page.getByRole("row", { name: /echo.*bob/ }).click(); // filters by both groups at once
  await page.getByRole("button", { name: "bob ✕" }).waitFor();
  await page.goBack();
  await page.getByLabel("Then group by").selectOption("");
  await page.getByLabel("Split").selectOption("member");
  await page.getByRole("row", { name: /you/ }).waitFor();
  await page.getByLabel("Split").selectOption("model");
  await page.getByLabel("Show").selectOption("tokens_per_s");
  await page.getByRole("columnheader", { name: "Tokens per second" }).waitFor();
  await page.getByRole("columnheader", { name: "TTFT p99" }).waitFor();
  await page.getByLabel("Show").selectOption("errors");
  await page.getByRole("row", { name: /nope\/none/ }).click();
  await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
  await page.getByRole("row", { name: /model_not_found/ }).waitFor();
  expect(page.faults).toEqual([]);
});

it("the Activity page labels totals with their days, and shows no change, if earlier requests are no longer stored", async () => {
  const page = await logIn(browser, key);
  const today = askedAt.toISOString().slice(0, 10);
  await page.goto("/console/#/activity?range=7&model=sandbox/echo");
  await page.getByRole("cell", { name: "new", exact: true }).waitFor();
  await page.route(/\/v1\/usage\?/, async (route) => {
    const response = await route.fetch();
    const json = { ...(await response.json()), complete_from: `${today}T00:00:00.000Z` };
    await route.fulfill({ response, json });
  });
  await page.reload();
  await page.getByText(/ in \d+ requests? since \d+ \w+ \(UTC\); on average/).waitFor();
  const days = page.locator("figcaption", { hasText: "in total" });
  const name = new Date(today).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  await days.getByText(`${name} to ${name} UTC`).waitFor();
  await page.getByRole("columnheader", { name: "Change" }).waitFor();
  expect(await page.locator(".change").allTextContents()).toEqual([""]);
});

it("the Requests page keeps the rows under the pointer in place until the reader loads new rows", async () => {
  const page = await logIn(browser, key);
  await goTo(page, "Requests");
  const rows = page.locator("main tbody tr");
  await expect.poll(() => rows.count()).toBe(4);
  await rows.first().hover();
  await sendRequest({ user: "new" });
  const letIn = page.getByRole("button", { name: "1 new" });
  await letIn.waitFor();
  expect(await rows.count()).toBe(4);
  await letIn.click();
  await page.getByRole("row", { name: /new/ }).waitFor();
  expect(await rows.count()).toBe(5);
});

it("a click on a part of the outcome chart filters requests", async () => {
  const page = await logIn(browser, key);
  await goTo(page, "Requests");
  const picture = page.locator("main .plot svg").first();
  await picture.waitFor();
  await picture.locator(".series-2").first().click();
  await expect.poll(() => page.url()).toContain("status=settled");
  await pageLoaded(page);
  expect(await page.getByRole("row", { name: /model_not_found/ }).count()).toBe(0);
});

it("the request chart shows one bar per day, and states if a filter includes only successful requests", async () => {
  const page = await logIn(browser, key);
  await goTo(page, "Requests");
  await page.getByText("Requests by status: today (UTC).").waitFor();
  const day = askedAt.toISOString().slice(0, 10);
  await page.goto(`${browser.origin}/console/#/requests?to=${day}`);
  await page.getByText(`Requests by status: ${day} to ${day} (UTC).`).waitFor();
  await page.locator("main .plot svg").first().waitFor();
  await page.goto(`${browser.origin}/console/#/requests?provider=sandbox`);
  await page.getByText("Successful requests: today (UTC).").waitFor();
  await page.getByRole("row", { name: /echo/ }).first().waitFor();
  expect(await page.getByRole("row", { name: /model_not_found/ }).count()).toBe(0);
  expect(page.faults).toEqual([]);
});

it("the More menu on a phone links to all other pages", async () => {
  const page = await logIn(browser, key, PHONE);
  await page.getByRole("button", { name: "More", exact: true }).click();
  const links = page.getByRole("dialog").getByRole("link");
  const names = await links.allTextContents();
  expect(names).toEqual(
    expect.arrayContaining(["Overview", "Models", "Settings", "Webhooks", "Docs"]),
  );
  await expectAccessible(page);
  await page.getByRole("dialog").getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("button", { name: "New webhook" }).waitFor();
  await goTo(page, "Settings");
});

it("a chart's six series are distinguishable in forced colors", async () => {
  const page = await logIn(browser, key);
  await page.emulateMedia({ forcedColors: "active" });
  await goTo(page, "Activity");
  await page.locator("main .plot svg").waitFor();
  const fills = await page.evaluate(() => {
    const shape = document.querySelector("main .swatch rect");
    return Array.from({ length: 6 }, (_, slot) => {
      shape?.setAttribute("class", `series-${slot}`);
      const id = /#([\w-]+)/.exec(shape === null ? "" : getComputedStyle(shape).fill)?.[1] ?? "";
      return document.querySelector(`#${id}`)?.innerHTML;
    });
  });
  expect(fills).not.toContain(undefined);
  expect(new Set(fills).size).toBe(6);
  expect(page.faults).toEqual([]);
});
