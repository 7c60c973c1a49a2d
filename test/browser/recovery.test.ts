import { beforeAll, describe, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { logIn, openWindow } from "./browser.ts";

const browser = openWindow();
let owner: { readonly key: string };

beforeAll(async () => {
  owner = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN, { rpmLimit: 1000 });
});

async function sendRequest(user: string): Promise<number> {
  const response = await fetch(`${browser.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      user,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  await response.text();
  return response.status;
}

describe("the console", () => {
  it("reloads a page whose script failed to load, as happens after a console update", async () => {
    const page = await logIn(browser, owner.key);
    await page.route("**/assets/models.*.js", (route) => route.abort());
    await page.reload();
    await page.goto("/console/#/models");
    const again = page.getByRole("button", { name: "Reload" });
    await again.waitFor();
    await page.unroute("**/assets/models.*.js");
    await again.click();
    await page.getByRole("heading", { level: 1, name: "Models", exact: true }).waitFor();
    await page.getByText("sandbox/echo").first().waitFor();
  });

  it("offers only existing end users in the search", async () => {
    expect(await sendRequest("ann-of-the-search")).toBe(200);
    const page = await logIn(browser, owner.key);
    await page.keyboard.press("Control+k");
    const search = page.getByRole("combobox", { name: "Search" });
    await search.fill("nobody-of-the-search");
    await page.getByText("No results").waitFor();
    expect(await page.getByRole("option").count()).toBe(0);
    await search.fill("ann-of-the-search");
    await page.getByRole("option", { name: /^End user ann-of-the-search/ }).waitFor();
  });

  it("shows the whole key for manual copying on the Connect page if the browser blocks the clipboard", async () => {
    const page = await logIn(browser, owner.key);
    await page.goto("/console/#/connect");
    await page.getByLabel("Paste a key").fill(owner.key);
    await page.keyboard.press("Tab");
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("blocked"));
    });
    await page.getByRole("button", { name: "Copy key" }).click();
    await page.getByText(owner.key, { exact: true }).waitFor();
    const block = page.getByRole("tabpanel");
    await block.getByRole("button", { name: "Copy" }).first().click();
    await block.getByText(owner.key).first().waitFor();
  });

  it("keeps text typed immediately after the search shortcut", async () => {
    const page = await logIn(browser, owner.key);
    const script = await page.waitForFunction(() =>
      performance.getEntriesByType("resource").find(({ name }) => name.includes("command-palette")),
    );
    const { name } = (await script.jsonValue()) as { name: string };
    await page.evaluate(`import(${JSON.stringify(name)}).then(() => undefined)`);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("activ", { delay: 20 });
    const typed = page.getByRole("combobox", { name: "Search" });
    await typed.waitFor();
    expect(await typed.inputValue()).toBe("activ");
  });
});
