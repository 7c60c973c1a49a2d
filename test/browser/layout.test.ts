import { beforeAll, describe, expect, it } from "vitest";
import { createKey, postMember } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { PHONE, goTo, logIn, openWindow, navigation, pageLoaded } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const browser = openWindow();
let used: { readonly orgId: string; readonly key: string };
let empty: { readonly orgId: string; readonly key: string };

beforeAll(async () => {
  const url = `${browser.origin}/admin/v1`;
  used = await makeOrganization(url, ADMIN_TOKEN, { rpmLimit: 1000 });
  empty = await makeOrganization(url, ADMIN_TOKEN, { credits: 0 });
  for (const model of ["sandbox/echo", "nope/none"]) await sendRequest(used.key, model);
});

/** Adds 60 purchases of the organization and 60 changes by an operator. */
async function fillOperatorsLists(orgId: string): Promise<void> {
  const sixty = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)";
  const fields = { method: "checkout", state: "declined", amountMicro: 10_000_000, tries: 0 };
  const none = { creditedMicro: null, returnedMicro: 0, card: null, error: null, url: null };
  const times = { createdAt: 1_796_000_000_000, updatedAt: 1_796_000_000_000, expiresAt: null };
  const unset = { customerId: null, sessionId: null, invoiceId: null, paymentId: null, step: null };
  const actor = { kind: "system", id: null };
  const rest = { saveCard: false, nextAt: null, requestId: null, actor };
  await browser.sql(
    `INSERT INTO purchases (id, org_id, state, returned_micro, record, updated_at)
     ${sixty} SELECT printf('pur_%024d', i), ?1, 'declined', 0,
       json_set(?2, '$.id', printf('pur_%024d', i)), 1 FROM n`,
    orgId,
    JSON.stringify({ ...fields, ...none, ...times, ...unset, ...rest }),
  );
  await browser.sql(
    `INSERT INTO operator_events (id, operator, act, org_id, target, request_id)
     ${sixty} SELECT printf('opev_%024d', i), 'eva', 'PATCH /orgs/:id', ?1, '{}', 'req_1' FROM n`,
    orgId,
  );
}

async function sendRequest(key: string, model: string): Promise<void> {
  const user = "an-end-user-with-a-long-name@example.com";
  const response = await fetch(`${browser.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, user, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
}

/** Returns the tables that scroll sideways, and the page if it does. */
function scrolling(page: WatchedPage): Promise<readonly string[]> {
  return page.evaluate(() => [
    ...[...document.querySelectorAll("main .table")]
      .filter((box) => box.scrollWidth > box.clientWidth)
      .map((box) => box.getAttribute("aria-label") ?? ""),
    ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
  ]);
}

describe("the console's layout", () => {
  it("shows all columns at 1280 px, without a horizontal scroll bar in any table", async () => {
    for (const [secret, pages] of [
      [used.key, ["Activity", "Requests", "End users", "Models", "Keys", "Credits", "Events"]],
      [ADMIN_TOKEN, ["Customers", "Catalog", "Payments", "Business", "Events", "Health"]],
    ] as const) {
      const page = await logIn(browser, secret);
      for (const name of pages) {
        await goTo(page, name);
        await expect.poll(() => scrolling(page), { message: name }).toEqual([]);
      }
    }
  });

  it("shows hidden columns again in a wider window", async () => {
    const page = await logIn(browser, used.key, { viewport: { width: 800, height: 900 } });
    await goTo(page, "Requests");
    const heads = page.getByRole("region", { name: "Requests" }).locator("th");
    await expect.poll(() => scrolling(page)).toEqual([]);
    const before = await heads.count();
    expect((await heads.allTextContents()).slice(0, 4)).toEqual([
      "Time",
      "Status",
      "Model",
      "Cost",
    ]);
    await page.setViewportSize({ width: 1800, height: 900 });
    await expect.poll(() => heads.count()).toBeGreaterThan(before);
  });

  it("fits links to four pages and the menu More in a phone's navigation bar", async () => {
    const page = await logIn(browser, used.key, PHONE);
    const bar = navigation(page);
    const names = await bar.locator("a:visible").allTextContents();
    expect(names).toEqual(["Overview", "Requests", "Keys", "Credits"]);
    await bar.getByRole("button", { name: "More" }).waitFor();
    expect(await bar.evaluate((node) => node.scrollWidth - node.clientWidth)).toBe(0);
  });

  it("groups the pages in the navigation, and shows a different icon for each page", async () => {
    const page = await logIn(browser, used.key);
    expect(await page.locator(".rail-group").allTextContents()).toEqual([
      "Usage",
      "Build",
      "Organization",
    ]);
    const paths = await page
      .locator(".rail .icon path")
      .evaluateAll((nodes) => nodes.map((node) => node.getAttribute("d")));
    expect(new Set(paths).size).toBe(paths.length);
  });

  it("reports an unknown address, and leads back to the overview", async () => {
    const page = await logIn(browser, used.key);
    await page.goto("/console/#/nowhere");
    await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
    await page.getByRole("link", { name: "Back to start page" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  it("shows the second page of a list after a reload, and Back returns to the first", async () => {
    for (let i = 0; i < 51; i += 1) await sendRequest(used.key, "sandbox/echo");
    await fillOperatorsLists(used.orgId);
    for (const [secret, at] of [
      [ADMIN_TOKEN, "catalog"],
      [used.key, "requests"],
      [ADMIN_TOKEN, "payments?state=declined"],
      [ADMIN_TOKEN, "acts?operator=eva"],
    ] as const) {
      const page = await logIn(browser, secret);
      await page.goto(`/console/#/${at}`);
      await page.getByRole("button", { name: "Next →" }).click();
      await page.getByText(/^51 to/).waitFor();
      await page.reload();
      await page.getByText(/^51 to/).waitFor();
      await page.goBack();
      await page.getByText(/^1 to/).waitFor();
    }
  });

  it("shows the whole text of a dialog above its buttons", async () => {
    const page = await logIn(browser, used.key);
    for (const [name, button] of [
      ["Keys", "Create key"],
      ["Overview", "Pause requests"],
    ] as const) {
      await goTo(page, name);
      await page.getByRole("button", { name: button, exact: true }).click();
      const covered = await page.getByRole("dialog").evaluate((dialog) => {
        dialog.scrollTop = dialog.scrollHeight;
        const actions = dialog.querySelector(".actions.end");
        const top = actions?.getBoundingClientRect().top ?? 0;
        return [...dialog.querySelectorAll("p, label, input, button")]
          .filter((one) => !actions?.contains(one) && one.getBoundingClientRect().bottom > top + 1)
          .map((one) => one.textContent);
      });
      expect(covered, button).toEqual([]);
      await page.keyboard.press("Escape");
    }
  });

  it("focuses the first field of a form", async () => {
    const page = await logIn(browser, used.key);
    await goTo(page, "Keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const name = page.getByRole("dialog").getByLabel("Name");
    await expect.poll(() => name.evaluate((field) => field === document.activeElement)).toBe(true);
  });

  it("lists a new organization's next steps until all steps are done or hidden", async () => {
    const page = await logIn(browser, empty.key);
    await page.getByRole("heading", { name: "Get started: 1 of 3 done" }).waitFor();
    await page.getByRole("link", { name: "Add credits" }).first().waitFor();
    expect(await page.locator("main .chart").count()).toBe(0); // no empty cards remain
    await page.getByRole("button", { name: "Hide" }).click();
    await page.reload();
    await pageLoaded(page);
    expect(await page.getByRole("heading", { name: /^Get started/ }).count()).toBe(0);
    const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
    const { orgId } = empty;
    const person = { email: "new@example.com", role: "member" } as const;
    const { id: memberId } = await postMember(admin, orgId, person);
    const terms = { orgId, memberId, scope: "regional", rpmLimit: 100, name: "Member" } as const;
    const member = await logIn(browser, await createKey(admin, terms));
    await member.getByRole("heading", { name: "Get started: 1 of 3 done" }).waitFor();
    const done = await logIn(browser, used.key);
    await done.locator(".plot svg").waitFor();
    expect(await done.getByRole("heading", { name: /^Get started/ }).count()).toBe(0);
  });
});
