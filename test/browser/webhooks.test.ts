import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import {
  DESKTOP,
  expectAccessible,
  goTo,
  logIn,
  openWindow,
  PHONE,
  pageLoaded,
} from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

/** The folder for the documentation's pictures, if they are updated. */
const { TURNPIKE_PICTURES: PICTURES } = process.env;
type Received = { readonly headers: Record<string, string>; readonly body: string };

const browser = openWindow();
/** Calls to a receiver on loopback, which webhooks may only use with the sandbox. */
const received: Received[] = [];
let status = 200;
const receiver = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    received.push({ headers: request.headers as Record<string, string>, body });
    response.writeHead(status).end("<b>thanks</b>");
  });
});
let owner: { readonly orgId: string; readonly key: string };
let url = "";

beforeAll(async () => {
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  owner = await makeOrganization(`${browser.origin}/admin/v1`, ADMIN_TOKEN, { rpmLimit: 1000 });
  // The organization's name in the documentation's pictures.
  await browser.sql("UPDATE organizations SET name = 'Northwind Labs' WHERE id = ?", owner.orgId);
  await browser.sql("UPDATE keys SET name = 'Server' WHERE org_id = ?", owner.orgId);
});
afterAll(() => {
  receiver.closeAllConnections();
  receiver.close();
});

const ofType = (type: string): readonly Received[] =>
  received.filter(({ body }) => (JSON.parse(body) as { type: string }).type === type);

async function openWebhooks(options?: object): Promise<WatchedPage> {
  const page = await logIn(browser, owner.key, options);
  await goTo(page, "Events");
  await page.getByRole("link", { name: "Webhooks" }).click();
  await pageLoaded(page);
  return page;
}

/** Returns a button in the dialog, not the one that opened it. */
const inDialog = (page: WatchedPage, name: string | RegExp) =>
  page.getByRole("dialog").getByRole("button", { name });

async function secretShown(page: WatchedPage): Promise<string> {
  const secret = (await page.locator(".secret code").textContent()) ?? "";
  await page.getByRole("button", { name: "Done" }).click();
  // The dialog asks for confirmation, because the secret was not copied.
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return secret;
}

it("a webhook can be created, delivered, listed, replayed, rotated, disabled and deleted in the console", async () => {
  const page = await openWebhooks();
  await page.getByText("No webhooks yet.").waitFor();
  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel("Address").fill("http://hooks.turnpike.dev/");
  await inDialog(page, "Create webhook").click();
  await page.getByText("Address must begin with https://.").waitFor();
  await page.getByLabel("Address").fill(url);
  await page.getByText("Only some events").click();
  await page.getByLabel("settings: changed").check();
  await inDialog(page, "Create webhook").click();
  const first = await secretShown(page);

  await page.getByRole("button", { name: "Send test event" }).click();
  await page.getByText("Delivered", { exact: true }).first().waitFor();
  await page.getByText("<b>thanks</b>", { exact: true }).waitFor();
  const [called] = ofType("webhook.test");
  expect(new Webhook(first).verify(called?.body ?? "", called?.headers ?? {})).toBeDefined();
  await inDialog(page, "Close").last().click();

  await changeSettings();
  await page.getByRole("cell", { name: "settings.changed" }).click();
  await expect.poll(() => page.getByRole("dialog").textContent()).toContain("delivered");
  await page.getByLabel("Response body").getByText("<b>thanks</b>").waitFor();
  const [delivery] = ofType("settings.changed");
  const headers = await page.getByLabel("Headers", { exact: true }).textContent();
  expect(headers).toContain(`webhook-signature: ${delivery?.headers["webhook-signature"]}`);
  expect(await page.getByLabel("Body", { exact: true }).textContent()).toBe(delivery?.body);
  expect(ofType("settings.changed")).toHaveLength(1);
  status = 500; // the delivery fails, appears under Waiting, and disappears after a resend
  await inDialog(page, "Resend").click();
  await expect.poll(() => page.getByRole("dialog").textContent()).toContain("pending");
  await inDialog(page, "Close").click();
  await page.getByRole("link", { name: "Waiting" }).click();
  await page.getByRole("cell", { name: "settings.changed" }).waitFor();
  await expect.poll(() => ofType("settings.changed").length).toBe(2);
  status = 200;
  await expectAccessible(page);
  await page.getByRole("button", { name: "Send all now" }).click();
  await page.getByText("1 event queued.").waitFor();
  await expect.poll(() => ofType("settings.changed").length).toBe(3);
  await page.getByRole("link", { name: "All", exact: true }).click();
  await page.getByRole("cell", { name: "delivered" }).waitFor();

  await page.getByRole("button", { name: "Replay…" }).click();
  await inDialog(page, "Replay").click();
  await page.getByText("1 event queued.").waitFor();
  await expect.poll(() => ofType("settings.changed").length).toBe(4);
  expect(new Set(ofType("settings.changed").map(({ headers }) => headers["webhook-id"])).size).toBe(
    1,
  );
  await inDialog(page, "Close").click();
  await page.getByRole("cell", { name: "delivered" }).waitFor();
  if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/webhook.png` });

  await page.getByRole("button", { name: "Rotate secret…" }).click();
  await page.getByLabel("The current secret expires").selectOption("0");
  await inDialog(page, "Rotate").click();
  const second = await secretShown(page);
  await page.getByRole("button", { name: "Send test event" }).click();
  await page.getByText("Delivered", { exact: true }).first().waitFor();
  const signed = ofType("webhook.test").at(-1);
  expect(new Webhook(second).verify(signed?.body ?? "", signed?.headers ?? {})).toBeDefined();
  expect(() => new Webhook(first).verify(signed?.body ?? "", signed?.headers ?? {})).toThrow();
  await inDialog(page, "Close").last().click();

  await page.getByRole("button", { name: "Disable webhook" }).click();
  await inDialog(page, "Disable webhook").click();
  await page.getByText("off", { exact: true }).waitFor();
  await changeSettings();
  await page.getByRole("button", { name: "Enable webhook" }).waitFor();
  expect(ofType("settings.changed")).toHaveLength(4);
  await page.getByRole("button", { name: "Delete…" }).click();
  await inDialog(page, "Delete webhook").click();
  await page.getByText("No webhooks yet.").waitFor();
  // The browser logs the rejected address.
  expect(page.faults).toEqual([expect.stringContaining("400")]);
});

it.each([
  ["Usage for Stripe meters", "stripe_meter_events", "Authorization"],
  ["Usage for OpenMeter", "openmeter", "Authorization"],
  ["Usage for Lago", "lago", "Authorization"],
  ["Usage as OpenTelemetry traces", "otlp", "x-team"],
] as const)(
  "a webhook with the format %s can be created and changed, and keeps its credential",
  async (label, format, header) => {
    const page = await openWebhooks();
    await page.getByRole("button", { name: "New webhook" }).click();
    await page.getByLabel("Address").fill(url);
    await page.getByLabel("Format").selectOption(label);
    await page.getByText("Only some events").waitFor({ state: "hidden" });
    await page.getByLabel("Receiver's credential").fill("secret_1");
    const isTrace = format === "otlp";
    if (isTrace) await page.getByLabel("Credential's header").fill(header);
    else {
      await inDialog(page, "Create webhook").click();
      await page
        .getByText(`The format "${format}" requires receiver.event_name.`)
        .first()
        .waitFor();
      await page.getByLabel("Event name").fill("ai_usage");
      await page.getByRole("textbox", { name: /^Customer/ }).fill("tag:team");
    }
    await fits(page);
    await inDialog(page, "Create webhook").click();
    await page.waitForURL(/events\/whk_/);
    const webhooks = await webhooksOf();
    const receiver = isTrace
      ? { event_name: null, customer: null, header }
      : { event_name: "ai_usage", customer: "tag:team", header: null };
    expect(webhooks).toMatchObject([{ url, format, types: ["usage.settled"], receiver }]);
    expect(await page.getByRole("button", { name: "Send test event" }).count()).toBe(0);
    await page.getByRole("button", { name: "Replay…" }).click();
    await inDialog(page, "Replay").click();
    await page.getByText("The usage is sent again from that point.").waitFor();
    await inDialog(page, "Close").click();
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByLabel("Address").fill(`${url}/2`);
    await inDialog(page, "Save").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const [{ receiver: before }] = webhooks as [{ receiver: object }];
    expect(await webhooksOf()).toMatchObject([{ url: `${url}/2`, format, receiver: before }]);
    await page.getByRole("button", { name: "Delete…" }).click();
    await inDialog(page, "Delete webhook").click();
    await page.getByText("No webhooks yet.").waitFor();
  },
);

async function webhooksOf(): Promise<unknown> {
  const headers = { authorization: `Bearer ${owner.key}` };
  const response = await fetch(`${browser.origin}/v1/webhooks`, { headers });
  return ((await response.json()) as { webhooks: unknown }).webhooks;
}

it("a person creates and tests a webhook, and resends a failed delivery, in 8 actions", async () => {
  const page = await logIn(browser, owner.key);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  let actions = 0;
  const act = (what: Promise<unknown>): Promise<unknown> => (actions++, what);
  await act(goTo(page, "Events"));
  await act(page.getByRole("link", { name: "Webhooks" }).click());
  await act(page.getByRole("button", { name: "New webhook" }).click());
  await act(page.getByLabel("Address").fill(`${url}/job`));
  await act(page.keyboard.press("Enter"));
  await act(page.getByRole("button", { name: "Copy and close" }).click());
  await page.waitForURL(/events\/whk_/);
  await act(page.getByRole("button", { name: "Send test event" }).click());
  await page.getByText("Delivered", { exact: true }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^whsec_/);
  await page.reload();
  status = 500;
  await changeSettings();
  const row = page.getByRole("row", { name: /settings\.changed/ });
  await row.getByText("pending").waitFor();
  status = 200;
  const before = ofType("settings.changed").length;
  await act(row.getByRole("button", { name: "Resend" }).click());
  await expect.poll(() => ofType("settings.changed").length).toBeGreaterThan(before);
  await row.getByText("delivered").waitFor();
  expect(page.faults).toEqual([]);
  expect(actions).toBeLessThanOrEqual(8);
  await page.getByRole("button", { name: "Delete…" }).click();
  await inDialog(page, "Delete webhook").click();
  await page.getByText("No webhooks yet.").waitFor();
});

it.each([
  ["light", { ...DESKTOP, colorScheme: "light" }],
  ["dark", { ...DESKTOP, colorScheme: "dark" }],
  ["a phone", PHONE],
  ["a phone in the dark", { ...PHONE, colorScheme: "dark" }],
] as const)(
  "every view of a failing webhook is accessible and fits the screen: %s",
  async (_, look) => {
    status = 500;
    const headers = { authorization: `Bearer ${owner.key}`, "content-type": "application/json" };
    const created = await fetch(`${browser.origin}/v1/webhooks`, {
      method: "POST",
      headers,
      body: JSON.stringify({ url: `${url}/${"long-".repeat(40)}`, types: ["settings.changed"] }),
    });
    const { id } = (await created.json()) as { id: string };
    await changeSettings();
    const page = await openWebhooks(look);
    await page.getByRole("cell", { name: /failing since/ }).waitFor();
    await fits(page);
    await page.getByRole("button", { name: "New webhook" }).click();
    await page.getByText("Only some events").click();
    await fits(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("cell", { name: /long-/ }).click();
    await page.getByRole("cell", { name: "settings.changed" }).waitFor();
    await fits(page);
    await page.getByRole("cell", { name: "settings.changed" }).click();
    await page.getByRole("heading", { name: "settings.changed" }).waitFor();
    await fits(page);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Replay…" }).click();
    await fits(page);
    expect(page.faults).toEqual([]);
    await fetch(`${browser.origin}/v1/webhooks/${id}`, { method: "DELETE", headers });
    status = 200;
  },
);

async function fits(page: WatchedPage): Promise<void> {
  await pageLoaded(page);
  await expectAccessible(page);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(over).toBeLessThanOrEqual(0);
}

let line = 0;
async function changeSettings(): Promise<void> {
  const response = await fetch(`${browser.origin}/v1/orgs/${owner.orgId}/settings`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
    body: JSON.stringify({ low_balance_threshold_dollars: ++line / 1000 }),
  });
  expect(response.status).toBe(200);
}
