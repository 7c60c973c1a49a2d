import { beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { expectAccessible, goTo, logIn, openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

/**
 * Frequent tasks, each with its maximum number of actions. An action is a click, a filled field, a
 * choice or a key.
 */
const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };

beforeAll(async () => {
  const url = `${browser.origin}/admin/v1`;
  owner = await makeOrganization(url, ADMIN_TOKEN, { rpmLimit: 1000 });
});

async function sendRequest(key: string, fields: object = {}): Promise<Response> {
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

/** Creates a key of the owner. Each key has its own limit of 300 console calls per minute. */
async function createOtherKey(): Promise<string> {
  const response = await fetch(`${browser.origin}/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Other" }),
  });
  return ((await response.json()) as { key: string }).key;
}

/** Counts the actions on a page. */
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

it("a person finds a failed request by its ID in 3 actions, and sees why the request failed", async () => {
  await sendRequest(owner.key);
  const refused = await sendRequest(owner.key, { model: "nope/none" });
  expect(refused.status).toBe(404);
  const id = refused.headers.get("x-request-id") ?? "";
  const job = counted(await logIn(browser, owner.key));
  await job.act((page) => goTo(page, "Requests"));
  await job.act((page) => page.getByLabel("Request ID").fill(id));
  await job.act((page) => page.keyboard.press("Enter"));
  const bill = job.page.getByRole("dialog");
  await bill.getByText("Rejected: The model 'nope/none' does not exist").waitFor();
  expect(await bill.textContent()).toContain("Nothing was charged.");
  expect(await bill.textContent()).toContain(id);
  await expectAccessible(job.page);
  await job.page.reload();
  await bill.getByText("Rejected: The model 'nope/none' does not exist").waitFor();
  expect(job.page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(3);
});

it("a click on an error code of today's failures filters the requests and the chart, and Back removes the filter", async () => {
  await sendRequest(owner.key, { model: "nope/none" });
  await sendRequest(owner.key, { messages: [] });
  const page = await logIn(browser, owner.key);
  await goTo(page, "Requests");
  await page.getByRole("link", { name: "Errors" }).click();
  const code = page.getByRole("button", { name: "model_not_found" });
  await code.waitFor();
  const count = Number.parseInt((await code.textContent()) ?? "", 10);
  const all = Number.parseInt((await page.locator(".notice.calm").textContent()) ?? "", 10);
  expect(all).toBeGreaterThan(count);
  await page.getByText(`${all} failed, rejected or stopped requests from`).waitFor();
  await page.getByText(`${all} in total, `).waitFor();
  await code.click();
  await page.waitForURL(/code=model_not_found/);
  await page.getByRole("row", { name: "model_not_found" }).first().waitFor();
  await page.getByText(`${count} in total, `).waitFor();
  await page.goBack();
  await page.waitForURL(/status=error(?!.*code)/);
  await page.getByText(`${all} in total, `).waitFor();
  expect(page.faults).toEqual([]);
});

it("the Errors tab shows a chart and a list for the same days, and no chart if there are no errors", async () => {
  const page = await logIn(browser, owner.key);
  const periodOf = (path: string) =>
    page
      .waitForRequest((request) => request.url().includes(path))
      .then((request) => {
        const { searchParams } = new URL(request.url());
        return [searchParams.get("from"), searchParams.get("to")];
      });
  const reads = [periodOf("/v1/generations?"), periodOf("group_by=hour%2Ccode")];
  await page.goto("/console/#/requests?status=error");
  const [from, to] = [-6, 0].map((days) =>
    new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10),
  );
  expect(await Promise.all(reads)).toEqual([
    [from, to],
    [from, to],
  ]);
  await page.getByText(`from ${from} to ${to} (UTC)`).waitFor();
  await page.locator(".plot svg").waitFor();
  await page.goto("/console/#/requests?status=error&from=2026-01-01&to=2026-01-02");
  await page.getByText("No errors from 2026-01-01 to 2026-01-02 (UTC)").waitFor();
  expect(await page.locator(".plot svg").count()).toBe(0);
  expect(page.faults).toEqual([]);
});

it("the console shows an end user's models after two actions, and the Back button undoes each action", async () => {
  for (const user of ["ann", "bob"])
    expect((await sendRequest(owner.key, { user })).status).toBe(200);
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

it("a page filter works while the browser is still applying the previous filter", async () => {
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

it("a person creates and copies a key with $5 a day, some models and an expiry in 8 actions", async () => {
  const page = await logIn(browser, owner.key);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await goTo(page, "Keys");
  const job = counted(page);
  await job.act(() => page.getByRole("button", { name: "Create key" }).first().click());
  const form = page.getByRole("dialog");
  await job.act(() => form.getByLabel("Name").fill("Agent"));
  await job.act(() => form.getByLabel("Budget in dollars").fill("5"));
  await job.act(() => form.getByLabel("Budget period").selectOption("day"));
  await job.act(() => form.getByRole("combobox", { name: "Models" }).fill("sandbox/*"));
  await job.act(() => form.getByRole("button", { name: "in 30 days" }).click());
  await form.getByRole("button", { name: "sandbox/* ✕" }).waitFor();
  await expectAccessible(page);
  await job.act(() => form.getByRole("button", { name: "Create key" }).click());
  await job.act(() => form.getByRole("button", { name: "Copy key" }).click());
  await form.getByRole("button", { name: "Copied" }).waitFor();
  const secret = await page.evaluate(() => navigator.clipboard.readText());
  const answer = await fetch(`${browser.origin}/v1/key`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  const terms = { name: "Agent", budget_dollars: 5, budget_period: "day" };
  expect(await answer.json()).toMatchObject({ ...terms, allowed_models: ["sandbox/*"] });
  expect(page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(8);
});

it.each(["Claude Code", "Codex", "OpenAI SDK for Python"])(
  "a person connects a client and sees the client's first request in 4 actions: %s",
  async (client) => {
    const page = await logIn(browser, owner.key);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const job = counted(page);
    await job.act(() => goTo(page, "Connect"));
    await job.act(() => page.getByRole("tab", { name: client, exact: true }).click());
    await job.act(() => page.getByRole("button", { name: "Create a key" }).click());
    await page.getByText("Waiting for the first request").waitFor();
    await job.act(() => page.getByRole("button", { name: "Copy", exact: true }).first().click());
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await expectAccessible(page);
    const block = await page.evaluate(() => navigator.clipboard.readText());
    const shown = await page.locator("main").textContent();
    const secret = await copiedKey(page);
    expect(block).not.toContain("YOUR_KEY");
    expect(block).toContain(browser.origin);
    expect(shown).not.toContain(secret);
    expect((await sendRequest(secret, { model: "nope/none" })).status).toBe(404);
    await page.getByRole("link", { name: "How to fix model_not_found" }).waitFor();
    expect((await sendRequest(secret)).status).toBe(200);
    await page.getByText(/It works: .*echo.* answered for \$/).waitFor();
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    expect(kept + page.url()).not.toContain(secret);
    expect(page.faults).toEqual([]);
    expect(job.spent()).toBeLessThanOrEqual(4);
  },
);

async function copiedKey(page: WatchedPage): Promise<string> {
  await page.getByRole("button", { name: "Copy key" }).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

it("a person finds the end user with the highest spend and sets a quota in 5 actions", async () => {
  for (const user of ["few", "many", "many", "many"]) await sendRequest(owner.key, { user });
  const job = counted(await logIn(browser, owner.key));
  await job.act((page) => goTo(page, "End users"));
  await job.act((page) => page.getByLabel("Order").selectOption("spent today"));
  const first = job.page.getByRole("row").nth(1);
  await first.getByText("many").waitFor();
  await expectAccessible(job.page);
  await job.act(() => first.getByRole("link", { name: "Set quota" }).click());
  await job.page.getByLabel("Daily quota [$]").fill("0.000001");
  await job.page.getByText(/will be rejected until .*the daily quota is used up/).waitFor();
  await job.act((page) => page.getByLabel("Daily quota [$]").fill("2"));
  await job.page.getByText("will be rejected").waitFor({ state: "detached" });
  await job.act((page) => page.keyboard.press("Enter"));
  await job.page.getByRole("dialog").waitFor({ state: "detached" });
  await first.getByText("many").waitFor(); // back returns to the previous page
  const headers = { authorization: `Bearer ${owner.key}`, "content-type": "application/json" };
  const answer = await fetch(`${browser.origin}/v1/users/many`, { headers });
  expect(await answer.json()).toMatchObject({ daily_quota_dollars: 2 });
  const body = JSON.stringify({ daily_quota_dollars: 0.000001 });
  await fetch(`${browser.origin}/v1/users/many`, { method: "PATCH", headers, body });
  await job.page.goto("/console/#/end-users/many");
  await job.page.getByText(/(?!100)\d{3,}% of \$0\.000001 a day/).waitFor();
  expect(job.page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(5);
});

it("a person finds and revokes a leaked key in 4 actions, and the browser never sends the secret", async () => {
  const headers = { authorization: `Bearer ${owner.key}`, "content-type": "application/json" };
  const created = await fetch(`${browser.origin}/v1/keys`, {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "Old server" }),
  });
  const { key: leaked } = (await created.json()) as { key: string };
  expect((await sendRequest(leaked)).status).toBe(200);
  const page = await logIn(browser, owner.key);
  const sent: string[] = [];
  page.on("request", (request) => sent.push(request.url() + (request.postData() ?? "")));
  const job = counted(page);
  await job.act(() => page.keyboard.press("Control+k"));
  await job.act(() => page.getByRole("combobox", { name: "Search" }).fill(leaked));
  await page
    .getByRole("option", { name: /Old server, live, 1 request since .*: Revoke/ })
    .waitFor();
  await expectAccessible(page);
  await job.act(() => page.keyboard.press("Enter"));
  await job.act(() => page.getByRole("button", { name: "Revoke Old server" }).click());
  const pressedAt = Date.now();
  await expect.poll(async () => (await sendRequest(leaked)).status).toBe(401);
  expect(Date.now() - pressedAt).toBeLessThan(2000);
  await page.getByText("Old server is revoked.").waitFor();
  expect(sent.join(" ") + page.url()).not.toContain(leaked.slice(-20));
  expect(page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(4);
});

it("the command palette finds and opens a request, key, model, end user, page and document", async () => {
  const id = (await sendRequest(owner.key, { user: "ann" })).headers.get("x-request-id") ?? "";
  const page = await logIn(browser, owner.key);
  const found = async (text: string, option: RegExp, address: RegExp): Promise<void> => {
    await page.goto("/console/");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search" }).fill(text);
    await page.getByRole("option", { name: option }).first().click();
    await page.waitForURL(address);
  };
  await found(id, /^Request/, new RegExp(`requests/${id}`));
  await found("sandbox/echo", /^Model sandbox\/echo/, /models\?q=sandbox%2Fecho/);
  await found("ann", /^End user ann/, /end-users\/ann/);
  await found("activ", /^Page Activity/, /activity/);
  await found("invoice", /^Page Credits/, /credits/);
  await found("stop spending", /^Page Settings/, /settings/);
  await found("webhook signature", /^Document/, /\/docs\/use\/webhooks/);
  expect(page.faults).toEqual([]);
});

it("the overview shows the spend trend and the runway immediately, and one click shows the balance curve", async () => {
  expect((await sendRequest(owner.key)).status).toBe(200);
  const job = counted(await logIn(browser, await createOtherKey()));
  await job.page.getByText(/Lasts .* if you spend as/).waitFor();
  await job.page.locator(".plot svg").first().waitFor();
  expect(job.spent()).toBe(0);
  await job.act((page) => goTo(page, "Credits"));
  await job.page.locator(".plot svg").first().waitFor();
  expect(job.page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(1);
});

it("the playground starts a stream, shows its cost and stops the stream with 3 user actions", async () => {
  const page = await logIn(browser, await createOtherKey());
  await page.goto("/console/#/playground?model=sandbox/slow-stream");
  let paid = 0;
  page.on("request", (request) => {
    if (/api\/v1\/chat\/completions$/.test(request.url())) paid += 1;
  });
  const job = counted(page);
  await job.act(() => page.getByLabel("User").fill("word ".repeat(300)));
  await job.act(() => page.getByRole("button", { name: "Run", exact: true }).click());
  await page.locator(".answer", { hasText: "word word" }).waitFor();
  await job.act(() => page.getByRole("button", { name: "Stop", exact: true }).click());
  const cost = page.locator("dl div", { hasText: "Cost" }).locator(".number");
  expect(await cost.getAttribute("title")).toMatch(/^[1-9]\d* micro-credits/);
  expect(paid).toBe(1);
  expect(job.spent()).toBeLessThanOrEqual(3);
  const stopped = page.getByRole("row", { name: "Stopped by the client" });
  await page.goto("/console/#/requests?status=error&code=client_left");
  await page.getByRole("button", { name: "1 stopped by the client", pressed: true }).waitFor();
  await stopped.click();
  await page.getByRole("dialog").getByText("these tokens are estimated").waitFor();
  expect((await sendRequest(owner.key, { model: "nope/none" })).status).toBe(404);
  await page.goto("/console/#/");
  await page.getByText(/errors? today/).waitFor();
  expect(await page.locator("main").innerText()).not.toContain("client_left");
  expect((await sendRequest(owner.key)).status).toBe(200);
  await page.goto("/console/#/requests?status=settled");
  await page.getByRole("row", { name: "Succeeded" }).first().waitFor();
  expect(await stopped.count()).toBe(0);
  expect(page.faults).toEqual([]);
});

it("a form that contains input closes only after a confirmation", async () => {
  const page = await logIn(browser, owner.key);
  await page.goto("/console/#/keys?make=1");
  await page.getByLabel("Name").fill("Half a key");
  await page.keyboard.press("Escape");
  await page.getByText("Your changes aren't saved.").waitFor();
  expect(await page.getByLabel("Name").inputValue()).toBe("Half a key");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(page.faults).toEqual([]);
});

it.each(["models", "end-users?spent=1"])(
  "a list's header stays visible while a person scrolls: %s",
  async (name) => {
    const viewport = { width: 1280, height: 260 };
    const page = await logIn(browser, await createOtherKey(), { viewport });
    await page.goto(`/console/#/${name}`);
    const head = page.locator("th").first();
    await head.waitFor();
    const tops = async (): Promise<{ readonly box: number; readonly head: number }> =>
      head.evaluate((cell) => {
        const box = cell.closest(".table");
        scrollTo(0, document.documentElement.scrollHeight);
        box?.scrollTo(0, box.scrollHeight);
        return {
          box: box?.getBoundingClientRect().bottom ?? 0,
          head: cell.getBoundingClientRect().top,
        };
      });
    await expect.poll(async () => (await tops()).head).toBeGreaterThanOrEqual(47);
    expect((await tops()).head).toBeLessThan((await tops()).box);
  },
);

it("an operator opens, credits and suspends a customer, and sees the health page, in 12 actions", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const dialog = page.getByRole("dialog");
  const job = counted(page);
  await page.getByText("All systems operational").waitFor(); // opens the first page of the list
  await page.getByText(/of \d+ available/).waitFor();
  await page.getByText(/of \d+ outboxes are empty/).waitFor();
  await job.act(() => goTo(page, "Customers"));
  await job.act(() => page.getByRole("button", { name: "New organization" }).click());
  await job.act(() => dialog.getByLabel("Name", { exact: true }).fill("Zoë's Works"));
  await job.act(() => dialog.getByLabel("Owner's email").fill("zoe@example.com"));
  await job.act(() => dialog.getByLabel("First credit [$]").fill("50"));
  await expectAccessible(page);
  await job.act(() => page.keyboard.press("Enter"));
  await job.act(() => dialog.getByRole("button", { name: "Copy and close" }).click());
  await page.getByRole("heading", { level: 1, name: "Zoë's Works" }).waitFor();
  await page.getByText("$50.00").first().waitFor();
  await page.getByText("zoe-s-works").first().waitFor();
  await job.act(() => page.getByRole("button", { name: "Add member…" }).click());
  await job.act(() => dialog.getByLabel("Address").fill("finn@example.com"));
  await job.act(() => page.keyboard.press("Enter"));
  await page.getByRole("row", { name: /^finn@example.com/ }).waitFor();
  await job.act(() => page.getByRole("button", { name: "Suspend…" }).click());
  await dialog.getByLabel("Reason").fill("Unpaid invoice"); // the reason is optional
  await job.act(() => dialog.getByRole("button", { name: "Suspend Zoë's Works" }).click());
  await page.getByText("■ suspended").waitFor();
  await page.getByText("by admin: Unpaid invoice").waitFor();
  expect(page.faults).toEqual([]);
  expect(job.spent()).toBeLessThanOrEqual(12);
});

it("the Connect page receives a new key in one action, and a reload removes the key", async () => {
  const page = await logIn(browser, await createOtherKey());
  await page.goto("/console/#/keys?make=1");
  await page.getByLabel("Name").fill("Handed over");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "Use in Connect" }).click();
  await page.getByText("Current key").waitFor();
  for (const name of ["Docs", "More about each client"]) {
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name, exact: true }).click();
    await (await opened).waitForURL(/\/docs\//);
    await page.getByText("Current key").waitFor();
  }
  await page.reload();
  await page.getByLabel("Paste a key").waitFor();
  expect(page.faults).toEqual([]);
});

it("the Connect page shows a model that a new key with allowed models may call", async () => {
  const page = await logIn(browser, await createOtherKey());
  await page.goto("/console/#/keys?make=1&models=sandbox/slow-stream");
  await page.getByLabel("Name").fill("Slow");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "Use in Connect" }).click();
  await page.getByText('"model":"sandbox/slow-stream"').waitFor();
});

it("an operator's login at the address of a customer's page opens the operator's first page", async () => {
  const page = await browser.open("/console/#/keys");
  await page.getByLabel("API key or operator's token").fill(ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Health" }).waitFor();
  expect(page.url()).toMatch(/#\/$/);
  expect(page.faults).toEqual([]);
});

it("the Models page shows each model's price and alias, and links to a new key for the model", async () => {
  const page = await logIn(browser, await createOtherKey());
  await goTo(page, "Models");
  await page.getByRole("row", { name: /^smart.*means sandbox\/echo/ }).waitFor();
  const ocr = page.getByRole("row", { name: /^sandbox\/ocr Copy/ });
  expect(await ocr.innerText()).toMatch(/\$[\d.]+ per page/);
  expect(await ocr.innerText()).not.toContain("$0.00\t");
  await expectAccessible(page);
  await page
    .getByRole("row", { name: /^sandbox\/echo Copy/ })
    .getByRole("link", { name: "Create key" })
    .click();
  await page.getByRole("button", { name: "sandbox/echo ✕" }).waitFor();
  expect(page.faults).toEqual([]);
});

it("an event appears as a sentence with a link to the event's subject", async () => {
  const page = await logIn(browser, await createOtherKey());
  await goTo(page, "Events");
  const row = page.getByRole("row", { name: /created Agent: .* requests per 60 s/ });
  await row.waitFor();
  await expectAccessible(page);
  await row.click();
  await page.getByRole("dialog").getByRole("link", { name: "See Agent" }).click();
  await page.waitForURL(/#\/keys\/key_/);
  expect(page.faults).toEqual([]);
});

it("an operator adds a member with a key, changes the role and a limit, and sees the events", async () => {
  const page = await logIn(browser, ADMIN_TOKEN);
  await page.goto(`/console/#/organizations/${owner.orgId}`);
  await page.getByRole("button", { name: "Add member…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address").fill("dana@example.com");
  await dialog.getByRole("button", { name: "Add member" }).click();
  const row = page.getByRole("row", { name: /^dana@example.com/ });
  await row.getByRole("button", { name: "Role…" }).click();
  await dialog.getByLabel("Role").selectOption("admin");
  await dialog.getByRole("button", { name: "Change role" }).click();
  await row.getByRole("cell", { name: "admin", exact: true }).waitFor();
  await row.getByRole("button", { name: "New key…" }).click();
  await dialog.getByLabel("Name").fill("Dana's laptop");
  await dialog.getByRole("button", { name: "Create key" }).click();
  await page.locator(".secret code").waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.getByRole("button", { name: "Change…" }).click();
  await dialog.getByLabel("Rate limit, per 60 s").fill("900");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("900", { exact: true }).waitFor();
  await page.reload();
  await page.getByText("admin (operator) created Dana's laptop").first().waitFor();
  await expectAccessible(page);
  await row.getByRole("button", { name: "Remove…" }).click();
  await dialog.getByRole("button", { name: "Remove member" }).click();
  await row.waitFor({ state: "detached" });
  expect(page.faults).toEqual([]);
});
