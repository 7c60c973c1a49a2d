import { beforeAll, describe, expect, it } from "vitest";
import {
  createKey,
  createOrganization,
  postMember,
  postMemberKey,
} from "../../scripts/admin-client.ts";
import type { AdminClient } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { goTo, logIn, openWindow, navigation } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";
import { paidBy, pressAll, SPARE } from "./button-presses.ts";

const LONG_TEXT = "word ".repeat(400);
/** A walk has about a hundred presses, each on a newly drawn page. */
const LONG_MS = 600_000;
const browser = openWindow();
let owner: Awaited<ReturnType<typeof makeOrganization>>;
let limited: string;

beforeAll(async () => {
  owner = await makeOrganization(admin().url, ADMIN_TOKEN, { rpmLimit: 1000 });
  const terms = { rpm_limit: 100, budget_dollars: 0.5, budget_period: "day" } as const;
  limited = (await postMemberKey(admin(), owner, { name: "limited", ...terms })).key;
  await makeSpares();
});

/**
 * Creates objects that the walks open, change and end: a request, an end user, a webhook and
 * another organization.
 */
async function makeSpares(): Promise<void> {
  const messages = [{ role: "user", content: "Hello" }];
  const requests: readonly (readonly [at: string, body: object])[] = [
    ["chat/completions", { model: "sandbox/echo", user: `${SPARE}-user`, messages }],
    ["chat/completions", { model: "nope/none", messages }],
    ["webhooks", { url: `https://hooks.example.com/${SPARE}`, types: ["balance.low"] }],
  ];
  for (const [at, body] of requests) {
    await fetch(`${browser.origin}/v1/${at}`, {
      method: "POST",
      headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }
  const ownerEmail = `${SPARE}@example.com`;
  await createOrganization(admin(), { name: SPARE, slug: SPARE, ownerEmail, keyScope: "regional" });
}

async function balance(): Promise<number> {
  const response = await fetch(`${browser.origin}/v1/balance`, {
    headers: { authorization: `Bearer ${owner.key}` },
  });
  const body = (await response.json()) as { held_micro: number; credits_micro: number };
  return body.held_micro > 0 ? NaN : body.credits_micro;
}

/** Ends the pauses of an earlier walk. */
async function endPauses(): Promise<void> {
  const headers = { authorization: `Bearer ${owner.key}` };
  const listed = await fetch(`${browser.origin}/v1/pauses`, { headers });
  const { pauses } = (await listed.json()) as { pauses: readonly { id: string }[] };
  for (const { id } of pauses) {
    await fetch(`${browser.origin}/v1/pauses/${id}`, { method: "DELETE", headers });
  }
}

/** Opens the playground with a prompt for a long output of this model. */
async function openPlayground(key: string, model: string, isStream = true): Promise<WatchedPage> {
  const page = await logIn(browser, key);
  await goTo(page, "Playground");
  await page.getByLabel("Model").selectOption(model);
  await page.getByLabel("User").fill(LONG_TEXT);
  if (!isStream) await page.getByLabel("Stream response").uncheck();
  return page;
}

const runButton = (page: WatchedPage) => page.getByRole("button", { name: "Run", exact: true });
const stopButton = (page: WatchedPage) => page.getByRole("button", { name: "Stop", exact: true });

/** Returns the cost that the page shows, in micro-credits. */
async function shownCost(page: WatchedPage): Promise<number> {
  const cost = page.locator("dl div", { hasText: "Cost" }).locator(".number");
  return Number(/^(\d+) micro-credits/.exec((await cost.getAttribute("title")) ?? "")?.[1]);
}

describe("the Stop button of the playground", () => {
  it("ends a stream without a second request, and shows the final cost, which matches the balance", async () => {
    const before = await balance();
    const page = await openPlayground(owner.key, "sandbox/slow-stream");
    const paid = paidBy(page);
    await runButton(page).dblclick(); // a double click sends only one request
    await page.locator(".answer", { hasText: "word word" }).waitFor();
    await stopButton(page).dblclick();
    const bill = await shownCost(page);
    expect(bill).toBeGreaterThan(0);
    await expect.poll(balance).toBe(before - bill);
    expect(paid()).toBe(1);
    await runButton(page).click(); // a later press sends the next request
    await expect.poll(paid).toBe(2);
    await stopButton(page).click();
    expect(page.faults).toEqual([]);
  });

  it("shows the actual cost of a stream that was stopped before any output", async () => {
    await expect.poll(balance).not.toBeNaN();
    const before = await balance();
    const page = await openPlayground(owner.key, "sandbox/slow-first-byte", false);
    const paid = paidBy(page);
    await runButton(page).click();
    await expect.poll(paid).toBe(1);
    await stopButton(page).click();
    const bill = await shownCost(page);
    await expect.poll(balance).toBe(before - bill);
    expect(paid()).toBe(1);
    expect(page.faults).toEqual([]);
  });

  it("links to the key's spend if the key may not read charges", async () => {
    const page = await openPlayground(limited, "sandbox/slow-stream");
    const paid = paidBy(page);
    await runButton(page).click();
    await page.locator(".answer", { hasText: "word word" }).waitFor();
    await stopButton(page).click();
    await page.getByRole("link", { name: "This key" }).nth(1).waitFor();
    expect(paid()).toBe(1);
    expect(page.faults).toEqual([]);
  });
});

describe("pressing every button of every page and dialog once", () => {
  it.each([
    ["owner", "mouse", 100],
    ["admin", "keyboard", 100],
    ["billing", "mouse", 60],
    ["member", "keyboard", 40],
  ] as const)(
    'causes charges only with the "Run" button, as %s, using the %s',
    async (role, by, least) => {
      await endPauses();
      const memberId = await memberOf(role);
      const page = await logIn(browser, await keyOf(role, memberId));
      // A paused organization can't use the playground.
      page.on("response", (response) => {
        const isPause = response.request().method() === "POST" && /\/pauses$/.test(response.url());
        if (isPause) void endPauses();
      });
      const renew = async (): Promise<void> => enterWith(page, await keyOf(role, memberId));
      const foreign = { name: `foreign to ${role}` };
      const { id } = await postMemberKey(admin(), owner, foreign);
      // A member sees only the member's own keys.
      const also = role === "member" ? [] : [`#/keys/${id}`];
      const { pressed, paid, refused } = await pressAll(page, { by, renew, also });
      console.log(role, by, pressed.length);
      expect(pressed.length).toBeGreaterThan(least);
      expect(refused).toEqual([]);
      const revoke = `Keys: Revoke ${foreign.name}?: Revoke ${foreign.name}`;
      expect(pressed.includes(revoke)).toBe(role !== "member");
      expect(paid).toEqual(["Playground: Run"]);
      expectNoErrors(page);
    },
    LONG_MS,
  );

  it('causes charges only with the "Run" button if logged in with a limited key', async () => {
    await endPauses();
    const page = await logIn(browser, limited);
    const { pressed, paid } = await pressAll(page);
    expect(pressed.length).toBeGreaterThan(1);
    expect(paid).toEqual(["Playground: Run"]);
    expectNoErrors(page);
  });

  it(
    "causes no charge for an operator, even in a customer's view",
    async () => {
      const page = await logIn(browser, ADMIN_TOKEN);
      await page.goto(`/console/#/organizations/${owner.orgId}`);
      await page.getByRole("button", { name: "View as customer" }).click();
      await page.getByText("without making changes").waitFor();
      const seen = await pressAll(page, {
        by: "keyboard",
        renew: () => enterWith(page, ADMIN_TOKEN, owner.orgId),
      });
      expect(seen.pressed.length).toBeGreaterThan(10);
      expect([seen.paid, seen.refused]).toEqual([[], []]);
      await page.getByRole("button", { name: "Leave", exact: true }).click();
      await navigation(page).getByRole("link", { name: "Catalog" }).waitFor();
      const { pressed, paid } = await pressAll(page, {
        without: ["View as customer"],
        renew: () => enterWith(page, ADMIN_TOKEN),
      });
      console.log("operator", seen.pressed.length, pressed.length);
      expect(pressed.length).toBeGreaterThan(30);
      expect(paid).toEqual([]);
      expectNoErrors(page);
    },
    LONG_MS,
  );
});

function expectNoErrors(page: WatchedPage): void {
  expect(page.faults.filter((fault) => fault.startsWith("error"))).toEqual([]);
}

type Role = "owner" | "admin" | "billing" | "member";
const admin = (): AdminClient => ({ url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN });

/** Creates a member with this role and a spare key. */
async function memberOf(role: Role): Promise<string> {
  const { orgId } = owner;
  const { id: memberId } = await postMember(admin(), orgId, { email: `${role}@example.com`, role });
  await postMemberKey(admin(), { orgId, memberId }, { name: `${SPARE} of ${role}` });
  return memberId;
}

/** Replaces the page's session by one of this key. With `org`, the session views a customer. */
async function enterWith(page: WatchedPage, key: string, org?: string): Promise<void> {
  const sent: readonly (readonly [at: string, body: object])[] = [
    ["login", { key }],
    ...(org === undefined ? [] : [["as", { org }] as const]),
  ];
  for (const [at, body] of sent) {
    const status = await page.evaluate(
      async ([path, text]) => {
        const headers = { "content-type": "application/json" };
        return (await fetch(path, { method: "POST", headers, body: text })).status;
      },
      [`/console/api/${at}`, JSON.stringify(body)] as const,
    );
    expect(status).toBe(200);
  }
}

async function keyOf(role: Role, memberId: string): Promise<string> {
  const { orgId } = owner;
  return createKey(admin(), { orgId, memberId, name: role, scope: "regional", rpmLimit: 1000 });
}
