import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { readDemo } from "../../scripts/dev-demo.ts";
import { goTo, navigation, pageLoaded } from "./browser.ts";
import { openStarted, signUp } from "./started-gateway.ts";

/** Tasks of the console's users. Each must be done within a number of actions. */
const started = openStarted();
let ann: Page;
let operator: Page;
let slug = "";

const press = (page: Page, name: string | RegExp): Promise<void> =>
  page.getByRole("button", { name, exact: true }).first().click();

const adminToken = (): string => readDemo(started.directory)?.admin_token ?? "";

async function enterAsOperator(): Promise<Page> {
  const page = await started.open("/console/");
  await page.getByLabel("API key or operator's token").fill(adminToken());
  await page.keyboard.press("Enter");
  await navigation(page).waitFor();
  return page;
}

/** Calls the API with the page's session. */
const call = (page: Page, method: string, at: string, body?: object): Promise<unknown> =>
  page.evaluate(
    async ([how, where, what]) => {
      const headers = { "content-type": "application/json" };
      const init = { method: how, headers, ...(what !== null && { body: what }) };
      return (await fetch(`/console/api${where}`, init)).json() as Promise<unknown>;
    },
    [method, at, body === undefined ? null : JSON.stringify(body)] as const,
  );

/** Runs actions and returns their number. */
async function act(page: Page, ...actions: readonly (() => Promise<unknown>)[]): Promise<number> {
  await page.goto(`${started.origins.eu}/console/`);
  await navigation(page).waitFor();
  await pageLoaded(page);
  for (const one of actions) await one();
  await pageLoaded(page);
  return actions.length;
}

const isInView = (one: Locator): Promise<boolean> =>
  one.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });

/** Types into the search, and opens the first result that matches. */
function search(page: Page, text: string, result: RegExp) {
  return [
    () => page.keyboard.press("Control+k"),
    async () => {
      await page.getByRole("combobox", { name: "Search" }).fill(text);
      await page.getByRole("option", { name: result }).first().waitFor();
    },
    () => page.keyboard.press("Enter"),
  ] as const;
}

beforeAll(async () => {
  ann = await started.open("/console/");
  await signUp(ann, "Ann");
  const session = (await call(ann, "GET", "/session")) as { organization: { slug: string } };
  slug = session.organization.slug;
  await goTo(ann, "Credits");
  await press(ann, "Pay $10.00");
  await press(ann, "Pay");
  await ann.locator(".notice", { hasText: "$10.00 was added" }).waitFor();
  const serverKey = (await call(ann, "POST", "/v1/keys", { name: "Server" })) as { key: string };
  await call(ann, "POST", "/v1/users", { external_id: "blocked", daily_quota_dollars: 0 });
  for (const user of ["blocked", "ann"]) {
    await fetch(`${started.origins.eu}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${serverKey.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sandbox/echo",
        user,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
  }
  operator = await enterAsOperator();
});

describe("a new developer in the console", () => {
  it("copies the first request with a new key in 3 user actions", async () => {
    const ben = await started.open("/console/");
    await signUp(ben, "Ben");
    await ben.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await act(
      ben,
      () => ben.getByRole("link", { name: "Connect your client" }).click(),
      () => press(ben, "Create a key").then(() => ben.getByText("Current key").waitFor()),
      () => press(ben, "Copy"),
    );
    const copied = await ben.evaluate(() => navigator.clipboard.readText());
    expect(copied).toMatch(/KEY=svc_sk_eu_live_\w{30,}/);
    expect(copied).toContain(`${started.origins.eu}/v1`);
  });

  it("finds the maximum cost of a request in 1 user action", async () => {
    await act(ann, () => goTo(ann, "Playground"));
    await ann.getByText(/at most about \$\d/).waitFor();
  });
});

describe("a billing member in the console", () => {
  it("finds the payments in 1 user action, and the receipts in 2 user actions", async () => {
    await act(ann, () => goTo(ann, "Credits"));
    await ann.getByRole("row", { name: /payment page.*paid.*\$10\.00/ }).waitFor();
    await press(ann, "Cards and invoices");
    await ann.waitForURL((url) => url.origin !== started.origins.eu);
  });

  it("downloads each key's cost for last month in 4 user actions", async () => {
    const downloaded = ann.waitForEvent("download");
    await act(
      ann,
      () => goTo(ann, "Activity"),
      () => ann.getByLabel("Range").selectOption("this month"),
      () => ann.getByLabel("Split", { exact: true }).selectOption("by key"),
      () => press(ann, "CSV"),
    );
    const file = await downloaded;
    expect(file.suggestedFilename()).toMatch(/^activity-key-\d{4}-\d\d(?:-\d\d)?[-\d to]*\.csv$/);
    const [head] = readFileSync(await file.path(), "utf8").split("\r\n");
    expect(head).toMatch(/^\uFEFF(?:[a-z_]+,)*requests,(?:[a-z_]+,?)*$/);
  });
});

describe("customer support in the console", () => {
  it("finds out in 3 user actions why an end user is blocked", async () => {
    await act(ann, ...search(ann, "blocked", /^End user blocked/));
    const dialog = ann.getByRole("dialog");
    await dialog
      .getByText(/of \$0\.00 a day|quota.*used up/i)
      .first()
      .waitFor();
  });

  it("finds out in 1 user action whether a model's providers are down", async () => {
    await act(ann, () => goTo(ann, "Models"));
    await ann.getByRole("row", { name: /^sandbox\/echo .*operational/ }).waitFor();
  });
});

describe("an operator in the console", () => {
  it("sees the region's health immediately after login", async () => {
    await act(operator);
    await operator.getByText("All systems operational").waitFor();
    await operator.getByRole("row", { name: /^sandbox .*%/ }).waitFor();
  });

  it("opens a customer's view of the console in 4 user actions", async () => {
    await act(operator, ...search(operator, slug, /^Customer/), () =>
      press(operator, "View as customer"),
    );
    await operator.getByText(/You see .* as its owner sees it/).waitFor();
    await press(operator, "Leave");
    await operator.getByRole("heading", { level: 1, name: "Ann" }).waitFor();
  });

  it("finds the margin in 1 user action", async () => {
    await act(operator, () => goTo(operator, "Business"));
    await operator
      .getByRole("row", { name: /sandbox/ })
      .first()
      .waitFor();
  });

  it("sets a customer's price in 8 user actions", async () => {
    const dialog = operator.getByRole("dialog");
    await act(
      operator,
      () => goTo(operator, "Customers"),
      () => operator.getByRole("cell", { name: slug, exact: true }).click(),
      () => operator.getByRole("link", { name: "Prices" }).click(),
      () => press(operator, "Schedule price"),
      () => dialog.getByLabel(/^Model/).fill("sandbox/echo"),
      () => dialog.getByLabel(/^Input/).fill("1.25"),
      () => dialog.getByLabel(/^Output/).fill("2.5"),
      () => operator.keyboard.press("Enter"),
    );
    await operator.getByRole("row", { name: /sandbox\/echo.*\$1\.25 in, \$2\.50 out/ }).waitFor();
  });

  it("opens a customer's request by its ID in 3 user actions", async () => {
    const { generations } = (await call(ann, "GET", "/v1/generations?limit=1")) as {
      generations: { id: string }[];
    };
    const id = generations[0]?.id ?? "";
    await act(operator, ...search(operator, id, new RegExp(`^Request ${id} of .*${slug}`)));
    await operator.getByRole("dialog").getByText(id).first().waitFor();
    await operator.keyboard.press("Escape");
    await press(operator, "Leave");
    await operator.getByRole("heading", { level: 1, name: "Ann" }).waitFor();
  });

  it("finds a customer's key by its ID in 3 user actions, and sees the key's row highlighted", async () => {
    const { keys } = (await call(ann, "GET", "/v1/keys")) as {
      keys: { id: string; name: string }[];
    };
    const { id = "", name = "" } = keys[0] ?? {};
    const mark = operator.locator("mark", { hasText: name });
    const size = operator.viewportSize();
    await operator.setViewportSize({ width: 1280, height: 400 }); // the keys are below the fold
    await act(operator, ...search(operator, id, /^Key/));
    await mark.waitFor();
    await expect.poll(() => isInView(mark)).toBe(true);
    // The second time, the page's data is already loaded.
    await goTo(operator, "Health");
    for (const action of search(operator, id, /^Key/)) await action();
    await mark.waitFor();
    await expect.poll(() => isInView(mark)).toBe(true);
    if (size) await operator.setViewportSize(size);
  });

  it("refunds a purchase in 4 user actions, and finds the purchase by its ID", async () => {
    await act(
      operator,
      () =>
        goTo(operator, "Payments").then(() =>
          operator.getByText("Open one to refund it.").waitFor(),
        ),
      () => operator.getByRole("row", { name: new RegExp(`${slug}.*payment page`) }).click(),
      () => press(operator, "Refund…"),
      () => press(operator, "Refund $10.00"),
    );
    await operator
      .getByRole("row", { name: /payment page.*\$10\.00.*\$10\.00.*\$10\.00/ })
      .waitFor();
    const { purchases } = (await call(operator, "GET", "/admin/v1/purchases?state=refunded")) as {
      purchases: { id: string; payment_id: string; returned_micro: number }[];
    };
    expect(purchases).toMatchObject([{ returned_micro: 10_000_000 }]);
    await operator.goto(`${started.origins.eu}/console/#/payments?state=declined`);
    await operator.getByRole("button", { name: "Clear" }).waitFor();
    expect(await operator.getByRole("row", { name: /payment page/ }).count()).toBe(0);
    await act(operator, ...search(operator, purchases[0]?.payment_id ?? "", /^Purchase/));
    const dialog = operator.getByRole("dialog");
    await dialog.getByText(purchases[0]?.id ?? "").waitFor();
    await dialog.getByRole("link", { name: "Ann", exact: true }).waitFor();
    expect(await dialog.innerText()).toMatch(/^Amount\s+\$10\.00\s+Refunded\s+\$10\.00$/m);
    await dialog.getByText(/^ann@/i).waitFor(); // the buyer's address, not the member's ID
    await operator.keyboard.press("Escape");
  });

  it("finds all operators' changes, with details, in 1 user action", async () => {
    await act(operator, () => goTo(operator, "Events"));
    await operator
      .getByRole("row", { name: /refunded \$10\.00 of \$10\.00 to Ann: requested by customer/ })
      .click();
    await operator.getByRole("dialog").getByText(/^pur_/).waitFor();
    await operator.keyboard.press("Escape");
  });

  it("suspends a customer in 4 user actions", async () => {
    await act(
      operator,
      () => goTo(operator, "Customers"),
      () => operator.getByRole("cell", { name: slug, exact: true }).click(),
      () => press(operator, "Suspend…"),
      () =>
        operator
          .getByRole("button", { name: /^Suspend / })
          .last()
          .click(),
    );
    await operator.getByText("■ suspended").waitFor();
  });
});
