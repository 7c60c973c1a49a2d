import type { Locator } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { createKey, postMember } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { PHONE, expectAccessible, goTo, logIn, openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };
let memberKey = "";

beforeAll(async () => {
  const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
  owner = await makeOrganization(admin.url, ADMIN_TOKEN, { rpmLimit: 1000 });
  const { orgId } = owner;
  const person = { email: "member@example.com", role: "member" } as const;
  const { id: memberId } = await postMember(admin, orgId, person);
  const terms = { orgId, memberId, scope: "regional", rpmLimit: 100, name: "Member" } as const;
  memberKey = await createKey(admin, terms);
});

function call(method: string, at: string, body?: object, key = owner.key): Promise<Response> {
  return fetch(`${browser.origin}/v1/${at}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function sendRequest(key = owner.key, fields: object = {}): Promise<Response> {
  const messages = [{ role: "user", content: "Hello" }];
  return call("POST", "chat/completions", { model: "sandbox/echo", messages, ...fields }, key);
}

const settings = async () => (await call("GET", `orgs/${owner.orgId}/settings`)).json();
const budgetOf = (page: WatchedPage, text: string | RegExp) =>
  page.locator(".budget").filter({ hasText: text });

/** Creates a budget with the form. */
async function createBudget(page: WatchedPage, limit: string, window: string): Promise<void> {
  await page.getByRole("button", { name: "Create budget" }).click();
  const form = page.getByRole("dialog", { name: "Create budget" });
  await form.getByLabel(/^Limit/).fill(limit);
  await form.getByLabel("Window").selectOption(window);
  await expectAccessible(page);
  await form.getByRole("button", { name: "Create budget" }).click();
  await form.waitFor({ state: "detached" });
}

describe("the console of an organization with budgets", () => {
  it("creates, changes and removes a budget of the organization", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "Settings");
    await page.getByText("No budgets.").waitFor();
    await createBudget(page, "$1,000.50", "60m");
    await budgetOf(page, "$0.00 of $1,000.50 in any 60 minutes").waitFor();
    await page.getByText("Alert at 80%.").waitFor();
    expect(await settings()).toMatchObject({ budgets: [{ limit_dollars: 1000.5, alert_at: 0.8 }] });
    await page.getByLabel("Name", { exact: true }).fill("Typed meanwhile");
    expect((await sendRequest()).status).toBe(200);
    // The page refreshes automatically.
    await budgetOf(page, /^\$0\.0\d+ of \$1,000\.50/).waitFor();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Typed meanwhile");
    await createBudget(page, "10000", "total");
    await page.getByRole("button", { name: "Edit the budget in any 60 minutes" }).click();
    const form = page.getByRole("dialog", { name: "Edit budget" });
    expect(await form.getByLabel(/^Limit/).inputValue()).toBe("1000.5");
    await form.getByLabel(/^Limit/).fill("-1");
    await form.getByRole("button", { name: "Save" }).click();
    await form
      .locator(".wrong")
      .getByLabel(/^Limit/)
      .waitFor(); // the error appears at its field
    await form.getByLabel(/^Limit/).fill("0");
    await form.getByRole("button", { name: "Save" }).click();
    await budgetOf(page, /of \$0\.00 in any 60 minutes/).waitFor();
    await budgetOf(page, /of \$10,000\.00 in total/).waitFor();
    await expectAccessible(page);
    expect(page.faults.filter((fault) => !fault.includes("400"))).toEqual([]);
  });

  it("shows a link to the budget next to each request that the budget rejected", async () => {
    const rejected = await sendRequest();
    expect(rejected.status).toBe(402);
    const id = rejected.headers.get("x-request-id") ?? "";
    const page = await logIn(browser, owner.key);
    await page.goto(`/console/#/requests/${id}`);
    await page.getByText("The organization's budget is used up.").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Change budget" }).click();
    await page.getByRole("button", { name: "Edit the budget in any 60 minutes" }).click();
    await page.getByRole("button", { name: "Remove budget…" }).click();
    await page.getByRole("button", { name: "Remove budget", exact: true }).click();
    await budgetOf(page, "in any 60 minutes").waitFor({ state: "detached" });
    expect(await settings()).toMatchObject({ budgets: [{ limit_dollars: 10000 }] });
    expect((await sendRequest()).status).toBe(200);
  });

  it("shows a member which roles can change the organization's budget", async () => {
    const body = { budgets: [{ limit_requests: 0, window: "day" }] };
    await call("PATCH", `orgs/${owner.orgId}/settings`, body);
    const rejected = await sendRequest(memberKey);
    expect(rejected.status).toBe(402);
    const page = await logIn(browser, memberKey);
    await page.goto(`/console/#/requests/${rejected.headers.get("x-request-id") ?? ""}`);
    await page.getByText("An owner, admin or billing member can raise it.").waitFor();
    expect(await page.getByRole("link", { name: "Change budget" }).count()).toBe(0);
    await call("PATCH", `orgs/${owner.orgId}/settings`, { budgets: [] });
  });

  it("creates budgets in the dialogs of keys and end users", async () => {
    const page = await logIn(browser, owner.key, PHONE);
    await call("POST", "users", { external_id: "ann" });
    await page.goto("/console/#/end-users/ann");
    await createBudget(page, "3", "day");
    await budgetOf(page, "$0.00 of $3.00 per day").waitFor();
    expect(await (await call("GET", "users/ann")).json()).toMatchObject({
      budgets: [{ limit_dollars: 3, window: "day", usage: 0 }],
    });
    const { id } = (await (await call("POST", "keys", { name: "Server" })).json()) as {
      id: string;
    };
    await page.goto(`/console/#/keys/${id}`);
    await createBudget(page, "5", "month");
    await budgetOf(page, "$5.00 per month").waitFor();
    await expectAccessible(page);
    // Escape closes the dialog immediately, because no field was changed.
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("shows a limited key's budgets without a button to create a budget", async () => {
    const budgets = [{ limit_tokens: 1000, window: "10m", models: ["sandbox/*"] }];
    const created = await call("POST", "keys", { name: "Agent", budgets });
    const memberKey = (await created.json()) as { key: string };
    const page = await logIn(browser, memberKey.key);
    await budgetOf(page, "0 tokens of 1,000 tokens in any 10 minutes").waitFor();
    await page.getByText("sandbox/*.").waitFor();
    expect(await page.getByRole("button", { name: "Create budget" }).count()).toBe(0);
    await expectAccessible(page);
  });
});

describe("the console of an organization with policies", () => {
  it("sets and removes a policy that immediately blocks all other models for the organization or a key", async () => {
    const page = await logIn(browser, owner.key);
    const form = page.getByRole("dialog", { name: "Edit policy" });
    await goTo(page, "Settings");
    await page.getByRole("button", { name: "Edit policy" }).click();
    await form.getByLabel("Models, allowed").selectOption("some");
    await form.getByLabel("Models", { exact: true }).fill("openai/*");
    await page.keyboard.press("Enter"); // Enter turns the text into a chip
    await form.getByLabel("Data regions, allowed").selectOption("some");
    await form.getByLabel("Data regions", { exact: true }).fill("eu");
    await page.keyboard.press("Enter");
    await form.getByRole("button", { name: "eu ✕" }).waitFor();
    await expectAccessible(page);
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    await page.getByText("openai/*").first().waitFor();
    const policy = { allowed_models: ["openai/*"], allowed_data_regions: ["eu"] };
    expect(await settings()).toMatchObject({ policy });
    expect((await sendRequest()).status).toBe(403);
    await page.getByRole("button", { name: "Edit policy" }).click();
    await form.getByLabel("Models, allowed").selectOption("all");
    await form.getByLabel("Data regions, allowed").selectOption("all");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    expect(await settings()).toMatchObject({ policy: null });
    const response = await call("POST", "keys", { name: "Narrow" });
    const narrow = (await response.json()) as { id: string; key: string };
    await page.goto(`/console/#/keys/${narrow.id}`);
    await page.getByRole("button", { name: "Edit policy" }).click();
    // An empty list allows no models.
    await form.getByLabel("Providers, allowed").selectOption("some");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    await page.getByRole("dialog").getByText("None", { exact: true }).waitFor();
    expect((await sendRequest(narrow.key)).status).toBe(403);
    await expectAccessible(page);
    expect(page.faults).toEqual([]);
  });

  it("shows a member no buttons that change a policy", async () => {
    const page = await logIn(browser, memberKey);
    await goTo(page, "Keys");
    expect(await page.getByRole("button", { name: "Edit policy" }).count()).toBe(0);
  });
});

/** Presses and releases the mouse with a pause, in which the page can move, as people do. */
async function press(page: WatchedPage, button: Locator): Promise<void> {
  const box = await button.boundingBox();
  if (box === null) throw new Error("the button isn't visible");
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.waitForTimeout(300);
  await page.mouse.up();
}

describe("a form with a list of models", () => {
  const typed = "sandbox/error-first, sandbox/status-500, sandbox/slow-stream, sandbox/echo";

  it("creates a key on the first press of the button, even while a model is being typed", async () => {
    const page = await logIn(browser, owner.key);
    await page.goto("/console/#/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Pressed");
    await form.getByRole("combobox", { name: "Models" }).fill(typed);
    await press(page, form.getByRole("button", { name: "Create key" }));
    await page.locator(".secret code").waitFor();
    const { keys } = (await (await call("GET", "keys")).json()) as { keys: object[] };
    expect(keys).toContainEqual(
      expect.objectContaining({ name: "Pressed", allowed_models: typed.split(", ") }),
    );
  });

  it("adds a typed model only at Enter or a comma, but a suggested model immediately", async () => {
    const page = await logIn(browser, owner.key);
    await page.goto("/console/#/keys?make=1");
    const form = page.getByRole("dialog");
    const field = form.getByRole("combobox", { name: "Models" });
    await form
      .locator('datalist option[value="sandbox/echo"]')
      .first()
      .waitFor({ state: "attached" });
    await field.pressSequentially("sandbox/echo-key-401");
    await page.keyboard.press("Enter");
    await field.pressSequentially("sandbox/echo-slow,");
    await field.evaluate((input: HTMLInputElement) => {
      input.value = "sandbox/echo";
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await form.getByRole("button", { name: "sandbox/echo ✕", exact: true }).waitFor();
    expect(await form.locator(".chips button").allTextContents()).toEqual([
      "sandbox/echo-key-401 ✕",
      "sandbox/echo-slow ✕",
      "sandbox/echo ✕",
    ]);
  });

  it("saves a policy on the first press of the button, even while a model is being typed", async () => {
    const { id } = (await (await call("POST", "keys", { name: "Policy" })).json()) as {
      id: string;
    };
    const page = await logIn(browser, owner.key);
    await page.goto(`/console/#/keys/${id}`);
    await page.getByRole("button", { name: "Edit policy" }).click();
    const form = page.getByRole("dialog", { name: "Edit policy" });
    await form.getByLabel("Models, allowed").selectOption("some");
    await form.getByLabel("Models", { exact: true }).fill(typed);
    await press(page, form.getByRole("button", { name: "Save" }));
    await form.waitFor({ state: "detached" });
    await page.getByText(typed).waitFor();
  });

  it("shows the error for an unknown model once, at the model's field, until the field changes", async () => {
    const page = await logIn(browser, owner.key);
    await page.goto("/console/#/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Unknown");
    await form.getByRole("combobox", { name: "Models" }).fill("gpt-5.4");
    await press(page, form.getByRole("button", { name: "Create key" }));
    const error = form.getByText("Models: no model here is named 'gpt-5.4'.");
    await error.waitFor();
    expect(await error.count()).toBe(1);
    expect(await form.locator(".failed strong:visible").count()).toBe(0);
    await expectAccessible(page);
    await form.getByRole("button", { name: "gpt-5.4 ✕" }).click();
    await error.waitFor({ state: "detached" });
  });

  it("keeps a form's buttons visible in a window that is too short for the whole form", async () => {
    const page = await logIn(browser, owner.key, { viewport: { width: 1280, height: 500 } });
    await page.goto("/console/#/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const button = page.getByRole("dialog").getByRole("button", { name: "Create key" });
    await button.waitFor();
    const box = await button.boundingBox();
    expect((box?.y ?? Infinity) + (box?.height ?? 0)).toBeLessThan(500);
  });

  it("warns about a provider that doesn't exist", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "Settings");
    await page.getByRole("button", { name: "Edit policy" }).click();
    const form = page.getByRole("dialog", { name: "Edit policy" });
    await form.getByLabel("Providers, allowed").selectOption("some");
    await form.getByLabel("Providers", { exact: true }).fill("opnai");
    await page.keyboard.press("Enter");
    await form.getByText("None of your models has a provider named opnai.").waitFor();
  });
});

describe("the dialog of a key", () => {
  it("lists budgets in dollars and in requests in one section, and allowed models in another", async () => {
    const fields = {
      budget_dollars: 5,
      budget_period: "month",
      budgets: [{ limit_requests: 9, window: "60m" }],
      allowed_models: ["sandbox/echo"],
    };
    const response = await call("POST", "keys", { name: "Both", ...fields });
    expect(response.status).toBe(201);
    const { id } = (await response.json()) as { id: string };
    const page = await logIn(browser, owner.key);
    await page.goto(`/console/#/keys/${id}`);
    const dialog = page.getByRole("dialog");
    await dialog.getByText("$0.00 of $5.00 a month").waitFor();
    await dialog.getByText("9 requests in any 60 minutes").waitFor();
    expect(await dialog.getByText("No budgets.").count()).toBe(0);
    expect(await dialog.getByRole("heading", { name: "Budgets" }).count()).toBe(1);
    expect(await dialog.locator("dt", { hasText: /^Budget$|^Models$/ }).count()).toBe(1);
    await dialog.getByRole("heading", { name: "Allowed models" }).waitFor();
    await dialog.getByText("sandbox/echo").waitFor();
    await expectAccessible(page);
  });
});
