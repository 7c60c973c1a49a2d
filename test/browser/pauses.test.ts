import { beforeAll, describe, expect, it } from "vitest";
import { createKey, postMember } from "../../scripts/admin-client.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { PHONE, expectAccessible, goTo, logIn, openWindow, navigation } from "./browser.ts";

const browser = openWindow();
let owner: { readonly orgId: string; readonly key: string };
let memberId = "";
let memberKey = "";

beforeAll(async () => {
  const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
  owner = await makeOrganization(admin.url, ADMIN_TOKEN, { rpmLimit: 1000 });
  const { orgId } = owner;
  const person = { email: "member@example.com", role: "member" } as const;
  memberId = (await postMember(admin, orgId, person)).id;
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

function sendRequest(key = owner.key): Promise<Response> {
  const messages = [{ role: "user", content: "Hello" }];
  return call("POST", "chat/completions", { model: "sandbox/echo", messages }, key);
}

async function newKey(): Promise<{ id: string; key: string }> {
  return (await call("POST", "keys", { name: "Nightly" })).json() as Promise<{
    id: string;
    key: string;
  }>;
}

describe("a pause in the console", () => {
  it("stops the requests of a key or of the organization until the pause ends", async () => {
    const { id, key } = await newKey();
    const page = await logIn(browser, owner.key, PHONE);
    await page.goto(`/console/#/keys/${id}`);
    await page.getByRole("button", { name: "Pause requests" }).click();
    const form = page.getByRole("dialog", { name: "Pause Nightly" });
    await form.getByLabel("End running requests too").check();
    await expectAccessible(page);
    await form.getByRole("button", { name: "Pause requests" }).click();
    await page.getByText("New requests of Nightly are paused: no reason given.").waitFor();
    expect((await sendRequest(key)).status).toBe(403);
    expect((await sendRequest()).status).toBe(200);
    const { pauses } = (await (await call("GET", "pauses")).json()) as { pauses: object[] };
    expect(pauses).toMatchObject([{ scope: "key", subject: id, stop_running: true }]);
    // Escape closes the dialog immediately, because no field was changed.
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await goTo(page, "Settings");
    await page.getByText("New requests of Nightly are paused").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume requests" }).click();
    await page.getByText("New requests of Nightly are paused").waitFor({ state: "detached" });
    expect((await sendRequest(key)).status).toBe(200);
    await expectAccessible(page);
  });

  it("appears as a link next to rejected requests, but only for people who can resume requests", async () => {
    const pause = { scope: "organization", reason: "Audit" };
    expect((await call("POST", "pauses", pause)).status).toBe(201);
    const rejected = await sendRequest();
    expect(rejected.status).toBe(403);
    const page = await logIn(browser, owner.key);
    await page.goto(`/console/#/requests/${rejected.headers.get("x-request-id") ?? ""}`);
    await page.getByText("An owner or admin can resume requests.").waitFor();
    await page.getByRole("link", { name: "View pauses" }).click();
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    const notice = page.locator(".notice").filter({ hasText: "are paused: Audit." });
    await notice.waitFor();
    expect(await page.getByRole("button", { name: "Pause requests" }).count()).toBe(0);
    await goTo(page, "Requests");
    await page.getByRole("link", { name: "Rejected", exact: true }).click();
    await page
      .getByRole("row", { name: /Rejected/ })
      .first()
      .waitFor();
    await expect.poll(() => page.getByRole("row", { name: /Succeeded/ }).count()).toBe(0);
    expect(await page.locator(".plot").count()).toBe(0); // counts don't separate rejected requests
    await page.getByText("A rejected request never started and is free.").waitFor();
    await goTo(page, "Settings");
    await notice.waitFor();
    const ofMember = await sendRequest(memberKey);
    const other = await logIn(browser, memberKey);
    await other.goto(`/console/#/requests/${ofMember.headers.get("x-request-id") ?? ""}`);
    await other.getByText("An owner or admin can resume requests.").waitFor();
    expect(await other.getByRole("link", { name: "View pauses" }).count()).toBe(0);
    await notice.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume requests" }).click();
    await notice.waitFor({ state: "detached" });
    expect((await sendRequest(memberKey)).status).toBe(200);
  });
});

describe("the pause of an end user or member in the console", () => {
  const reason = "Night shift";

  it("shows the name of the end user or member, and is fetched once per page", async () => {
    await call("POST", "users", { external_id: "ben" });
    await call("POST", "pauses", { scope: "end_user", id: "ben", reason });
    await call("POST", "pauses", { scope: "member", id: memberId, reason });
    const page = await logIn(browser, owner.key);
    await page.clock.install();
    await page.reload();
    await navigation(page).waitFor();
    await goTo(page, "Events");
    await page.getByText(`paused ben: ${reason}.`).waitFor();
    await goTo(page, "Settings");
    await page.getByText(`requests of member ${memberId.slice(0, 8)} are paused`).waitFor();
    let reads = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/pauses")) reads += 1;
    });
    for (let seconds = 0; seconds < 60; seconds += 5) {
      await page.clock.runFor(5000);
      await new Promise((resolve) => setTimeout(resolve, 200)); // the region answers meanwhile
    }
    expect(reads).toBeLessThanOrEqual(5);
    expect(reads).toBeGreaterThan(2);
    const { pauses } = (await (await call("GET", "pauses")).json()) as { pauses: { id: string }[] };
    for (const pause of pauses) await call("DELETE", `pauses/${pause.id}`);
  });
});

describe("the console of an organization that can't spend", () => {
  const reason = "Costs under review";

  it("shows a pause with its reason on every page and after a reload, until someone resumes spending", async () => {
    const page = await logIn(browser, owner.key);
    await page.getByRole("button", { name: "Pause requests" }).click();
    const form = page.getByRole("dialog", { name: /^Pause all requests of / });
    await form.getByLabel("Reason").fill(reason);
    await form.getByRole("button", { name: "Pause requests" }).click();
    const notice = page.getByText(new RegExp(`All new requests of .* are paused: ${reason}`));
    await notice.waitFor();
    expect((await sendRequest(memberKey)).status).toBe(403);
    expect(await page.getByRole("button", { name: "Pause requests" }).count()).toBe(0);
    for (const name of ["Keys", "Credits", "Activity"]) {
      await goTo(page, name);
      await notice.waitFor();
    }
    await expectAccessible(page);
    await page.reload();
    await notice.waitFor();
    const member = await logIn(browser, memberKey, PHONE);
    await member.getByText(`are paused: ${reason}`).waitFor();
    expect(await member.getByRole("button", { name: /Resume|Pause requests/ }).count()).toBe(0);
    await expectAccessible(member);
    await page.getByRole("button", { name: "Resume" }).click();
    const resume = page.getByRole("dialog", { name: /^Resume requests of / });
    await resume.getByText(/accept new requests from .* again, from all keys that/).waitFor();
    const verb = resume.getByRole("button", { name: "Resume requests" });
    expect(await verb.getAttribute("class")).toBe("primary");
    await verb.click();
    await notice.waitFor({ state: "detached" });
    expect((await sendRequest(memberKey)).status).toBe(200);
    expect(page.faults).toEqual([]);
  });

  it("shows on every page that the organization is suspended or closed", async () => {
    const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
    const { orgId, key } = await makeOrganization(admin.url, ADMIN_TOKEN, { credits: 0 });
    const change = (method: string, body: object): Promise<Response> =>
      fetch(`${admin.url}/orgs/${orgId}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const page = await logIn(browser, key);
    expect((await change("PATCH", { status: "suspended" })).status).toBe(200);
    const suspended = /^■ This organization is suspended\..* Contact the operator/;
    const notice = page.getByText(suspended);
    await notice.waitFor(); // the notice appears without a reload
    await goTo(page, "Keys");
    await notice.waitFor();
    await expectAccessible(page);
    const operator = await logIn(browser, ADMIN_TOKEN);
    await operator.goto(`/console/#/organizations/${orgId}`);
    await operator.getByRole("button", { name: "View as customer" }).click();
    await operator.getByText(suspended).waitFor();
    expect((await change("DELETE", { give_up_balance: true })).status).toBe(200);
    await operator.reload();
    await operator.getByText("This organization is closed.").waitFor();
  });
});

describe("a pause by a billing member in the console", () => {
  it("can only be ended by owners and admins, as the dialog and the notice say", async () => {
    const admin = { url: `${browser.origin}/admin/v1`, token: ADMIN_TOKEN };
    const { orgId } = owner;
    const person = { email: "billing@example.com", role: "billing" } as const;
    const { id } = await postMember(admin, orgId, person);
    const terms = {
      orgId,
      memberId: id,
      scope: "regional",
      rpmLimit: 100,
      name: "Billing",
    } as const;
    const page = await logIn(browser, await createKey(admin, terms));
    const note = "Only owners and admins can resume requests.";
    await page.getByRole("button", { name: "Pause requests" }).click();
    const form = page.getByRole("dialog");
    await form.getByText(note).waitFor();
    await form.getByRole("button", { name: "Pause requests" }).click();
    await page.locator(".halted").getByText(note).waitFor();
    expect(await page.getByRole("button", { name: "Resume" }).count()).toBe(0);
    await expectAccessible(page);
    const manager = await logIn(browser, owner.key);
    await manager.getByRole("button", { name: "Resume" }).click();
    await manager.getByRole("button", { name: "Resume requests" }).click();
    await page.getByText(note).waitFor({ state: "detached" });
  });
});

describe("an end user whose requests are rejected", () => {
  const askAs = (user: string): Promise<Response> => {
    const messages = [{ role: "user", content: "Hello" }];
    return call("POST", "chat/completions", { model: "sandbox/echo", messages, user });
  };
  const rejectedId = async (user: string, status: number): Promise<string> => {
    const response = await askAs(user);
    expect(response.status).toBe(status);
    return response.headers.get("x-request-id") ?? "";
  };

  it("appears as blocked in the list and the overview until the quota is raised", async () => {
    expect((await askAs("ann")).status).toBe(200);
    const { monthly_spend_dollars: spent } = (await (await call("GET", "users/ann")).json()) as {
      monthly_spend_dollars: number;
    };
    await call("PATCH", "users/ann", { monthly_quota_dollars: spent });
    const id = await rejectedId("ann", 429);
    const page = await logIn(browser, owner.key);
    await page.getByText(/ann is blocked until 1 \w{3}, 00:00 UTC/).waitFor();
    await goTo(page, "End users");
    await page.getByRole("row", { name: /ann.*blocked.*until 1 \w{3}, 00:00 UTC/ }).waitFor();
    await expectAccessible(page);
    await page.goto(`/console/#/requests/${id}`);
    const bill = page.getByRole("dialog");
    const exact = `$0.00 of $${spent.toFixed(6).replace(/0{1,4}$/, "")} left`;
    await bill.getByText(exact).first().waitFor();
    expect(await bill.textContent()).not.toContain("micro-credits");
    await bill.getByRole("link", { name: "Raise the quota of ann" }).click();
    const form = page.getByRole("dialog", { name: "Quotas of ann" });
    await form.getByText(/^Spent: .* this month \(UTC\)\.$/).waitFor();
    await form.getByLabel("Monthly quota [$]").fill("2");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /ann.*active/ }).waitFor();
    expect((await askAs("ann")).status).toBe(200);
    expect(page.faults).toEqual([]);
  });

  it("appears as a paused end user, and the rejected request links to the pause", async () => {
    expect((await askAs("bob")).status).toBe(200);
    const pause = { scope: "end_user", id: "bob", reason: "Review" };
    expect((await call("POST", "pauses", pause)).status).toBe(201);
    const id = await rejectedId("bob", 403);
    const page = await logIn(browser, owner.key);
    await goTo(page, "End users");
    await page.getByRole("row", { name: /bob.*paused/ }).waitFor();
    await page.goto(`/console/#/requests/${id}`);
    await page.getByRole("link", { name: "Resume bob" }).click();
    const dialog = page.getByRole("dialog", { name: "bob" });
    await dialog.getByText("New requests of bob are paused: Review.").waitFor();
    await dialog.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume requests" }).click();
    await page.getByRole("row", { name: /bob.*active/ }).waitFor();
  });

  it("can be opened only by the complete ID; a partial ID shows an explanation", async () => {
    const page = await logIn(browser, owner.key);
    await goTo(page, "End users");
    await page.getByLabel("End user ID").fill("an");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("No end user has exactly this ID.").waitFor();
    await expectAccessible(page);
  });
});
