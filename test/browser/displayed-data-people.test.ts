import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { readDemo } from "../../scripts/dev-demo.ts";
import { formatCharge } from "../../src/console/browser/lib/money.ts";
import { describeOperatorCall } from "../../src/console/browser/lib/operator-acts.ts";
import { navigation } from "./browser.ts";
import { continueAs, openStarted, signUp } from "./started-gateway.ts";
import { collectResponses, pageDrawn, rowsOf, unmatchedAmounts } from "./displayed-data.ts";
import type { Json, Responses } from "./displayed-data.ts";

/** Compares what people's pages show with the responses that they received, with refunds and held requests. */
const started = openStarted();
let ann: Page;
let ben: Page;
let org = "";
let key = "";

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

async function show(page: Page, at: string): Promise<Responses> {
  const responses = collectResponses(page);
  await page.goto(`${started.origins.eu}/console/#/${at}`);
  await page.reload();
  await pageDrawn(page);
  return responses;
}

/** Calls the API with the page's session, or as the operator. */
async function call(page: Page, method: string, at: string, body?: object): Promise<Json> {
  return page.evaluate(
    async ([how, where, what]) => {
      const headers = { "content-type": "application/json" };
      const init = { method: how, headers, ...(what !== null && { body: what }) };
      const text = await (await fetch(`/console/api${where}`, init)).text();
      return JSON.parse(text) as Readonly<Record<string, unknown>>;
    },
    [method, at, body === undefined ? null : JSON.stringify(body)] as const,
  );
}

const asOperator = async (at: string, body?: object): Promise<Json> => {
  const response = await fetch(`${started.origins.eu}/admin/v1${at}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${readDemo(started.directory)?.admin_token ?? ""}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Json;
};

beforeAll(async () => {
  ann = await started.open("/console/");
  await signUp(ann, "Ann");
  org = ((await call(ann, "GET", "/session"))["organization"] as { id: string }).id;
  await ann.goto(`${started.origins.eu}/console/#/credits`);
  await press(ann, "Pay $10.00");
  await press(ann, "Pay");
  await ann.locator(".notice", { hasText: "$10.00 was added" }).waitFor();
  const { purchases } = await asOperator(`/orgs/${org}/purchases`);
  const [{ id } = { id: "" }] = purchases as { id: string }[];
  const refund = { amount_cents: 300, reason: "requested_by_customer" };
  await asOperator(`/orgs/${org}/purchases/${id}/refund`, refund);
  const wasRefunded = async (): Promise<void> => {
    const { credits } = await call(ann, "GET", "/v1/credits");
    expect((credits as Json[]).map(({ kind }) => kind)).toContain("reversal");
  };
  await vi.waitFor(wasRefunded, { timeout: 60_000, interval: 500 });
  const created = await call(ann, "POST", "/v1/keys", { name: "Server" });
  key = String(created["key"]);
});

describe("the console for a logged-in person", () => {
  it.each(["", "credits", "team", "profile", "events", "connect", "playground", "exports"])(
    "shows the API's values on the page '%s'",
    async (at) => {
      const responses = await show(ann, at);
      expect(responses.size).toBeGreaterThan(0);
      expect(await unmatchedAmounts(ann, responses)).toEqual([]);
    },
  );

  it.each(["", "credits", "requests?status=held"])(
    "shows the API's values on the page '%s' while a hold is open",
    async (at) => {
      const heldNow = async () => (await call(ann, "GET", "/v1/balance"))["held_micro"];
      await expect.poll(heldNow).toBe(0); // the previous stream has ended
      const end = new AbortController();
      const stream = { model: "sandbox/slow-stream", stream: true };
      const messages = [{ role: "user", content: "word ".repeat(1500) }];
      await fetch(`${started.origins.eu}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ ...stream, messages }),
        signal: end.signal,
      });
      const { held_micro: heldMicro } = await call(ann, "GET", "/v1/balance");
      const responses = await show(ann, at);
      expect(await unmatchedAmounts(ann, responses)).toEqual([]);
      end.abort();
      expect(heldMicro).toBeGreaterThan(0);
      expect(await ann.locator("main").innerText()).toContain(formatCharge(Number(heldMicro)));
    },
  );

  it("shows members with their role and address", async () => {
    const responses = await show(ann, "team");
    const text = await ann.locator("main").innerText();
    const members = rowsOf(responses, "members");
    expect(members.length).toBeGreaterThan(0);
    for (const { name, email, role } of members) {
      for (const one of [name, email, role]) expect(text).toContain(String(one));
    }
  });

  it("shows the refund of a purchase as returned money", async () => {
    const responses = await show(ann, "credits");
    const refunded = rowsOf(responses, "credits").filter(({ kind }) => kind === "reversal");
    expect(new Set(refunded.map(({ amount_micro: micros }) => micros))).toEqual(new Set([-3e6]));
    await ann
      .getByRole("row")
      .filter({ hasText: formatCharge(-3e6) })
      .first()
      .waitFor();
  });

  it("shows the API's values to a person without an organization", async () => {
    await call(ann, "POST", "/people/organization/team", {});
    const invitation = await call(ann, "POST", "/people/invitations", {
      role: "member",
      email: "ben@example.test",
    });
    expect(invitation["link"], JSON.stringify(invitation)).toBeDefined();
    ben = await started.open(String(invitation["link"]));
    await continueAs(ben, "Ben");
    const { members } = await call(ann, "GET", "/people/members");
    const member = (members as Json[]).find(({ name }) => name === "Ben");
    await call(ann, "DELETE", `/people/members/${String(member?.["id"])}`);
    await ben.goto(`${started.origins.eu}/console/`);
    await continueAs(ben, "Ben");
    const responses = await show(ben, "profile");
    expect(await unmatchedAmounts(ben, responses)).toEqual([]);
    expect(await navigation(ben).getByRole("link", { name: "Keys" }).count()).toBe(0);
    expect(await ben.locator("main").innerText()).toContain("Ben");
  });
});

describe("the console on the operator pages Payments and Events", () => {
  it("shows the purchases and operators' changes that the API returns", async () => {
    const operator = await started.open("/console/");
    const token = readDemo(started.directory)?.admin_token ?? "";
    await operator.getByLabel("API key or operator's token").fill(token);
    await operator.keyboard.press("Enter");
    await navigation(operator).waitFor();
    const responses = await show(operator, "payments?state=refunded");
    expect(await unmatchedAmounts(operator, responses)).toEqual([]);
    const [purchase] = rowsOf(responses, "purchases");
    const { slug } = purchase?.["organization"] as { slug: string };
    const row = operator.getByRole("region", { name: "Purchases" }).locator("tbody tr");
    expect(await row.count()).toBe(1);
    const text = await row.innerText();
    for (const part of [slug, "partly refunded", "$10.00", "$3.00"]) expect(text).toContain(part);
    const read = await asOperator("/purchases?state=refunded");
    expect(rowsOf(responses, "purchases")).toEqual(read["purchases"]);
    const changes = await show(operator, "acts");
    expect(await unmatchedAmounts(operator, changes)).toEqual([]);
    const events = rowsOf(changes, "events") as unknown as Parameters<
      typeof describeOperatorCall
    >[0][];
    const shown = await operator.locator("main tbody tr td:nth-child(2)").allInnerTexts();
    expect(shown).toEqual(events.map(describeOperatorCall));
    expect(shown.join(" ")).toContain("refunded $3.00 of $10.00 to Ann");
  });
});
