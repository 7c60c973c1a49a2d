import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { deleteOldOperatorEvents } from "../../src/operator/operator-events.store.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { describeOperatorCall } from "../../src/console/browser/lib/operator-acts.ts";
import { admin, bindingsWith, newOrganization, openAccount, send } from "./client.ts";
import type { MadeOrganization } from "./client.ts";

type OperatorEvent = {
  readonly id: string;
  readonly operator: string;
  readonly act: string;
  readonly organization: { readonly id: string; readonly name: string } | null;
  readonly target: object;
  readonly target_name: string | null;
  readonly details: Readonly<Record<string, unknown>>;
};
type Page = { readonly events: readonly OperatorEvent[]; readonly next_after: string | null };

const page = async (query: string): Promise<Page> =>
  (await admin("GET", `/events?${query}`)).json();

describe("GET /admin/v1/events", () => {
  it("lists an operator's successful changes with their organization and target, and omits rejected changes", async () => {
    const { orgId, keyId } = await openAccount({ credits: 0 });
    const key = `/orgs/${orgId}/keys/${keyId}`;
    await admin("PATCH", key, { name: "Renamed", rpm_limit: 7 });
    expect((await admin("PATCH", key, { rpm_limit: -1 })).status).toBe(400);
    await admin("GET", key);
    const { events } = await page(`org=${orgId}`);
    expect(events).toMatchObject([
      {
        act: "PATCH /orgs/{id}/keys/{key_id}",
        organization: { id: orgId },
        target: { key_id: keyId },
        target_name: "Renamed",
        details: { rpm_limit: 7, other_fields: ["name"] },
      },
      { act: "POST /orgs", organization: { id: orgId, name: "Contract" }, target: {} },
    ]);
  });

  it("filters events by operator, organization and time, and returns the next page for next_after", async () => {
    const eva = "eva".padEnd(32, "x");
    const bindings = bindingsWith({ ADMIN_TOKENS: `eva:${eva}` });
    const body = newOrganization();
    const response = await send("/admin/v1/orgs", { key: eva, bindings, body });
    const { organization } = await response.json<MadeOrganization>();
    await send(`/admin/v1/orgs/${organization.id}`, {
      method: "PATCH",
      key: eva,
      bindings,
      body: { name: "Another" },
    });
    await admin("PATCH", `/orgs/${organization.id}`, { name: "A third" });
    const query = `org=${String(body["slug"])}&operator=eva`;
    const { events } = await page(query);
    expect(events.map(({ act }) => act)).toEqual(["PATCH /orgs/{id}", "POST /orgs"]);
    const first = await page(`${query}&limit=1`);
    const second = await page(`${query}&limit=1&after=${first.next_after}`);
    expect([...first.events, ...second.events]).toEqual(events);
    expect(second.next_after).toBeNull();
    expect((await page(`${query}&to=2026-01-01`)).events).toEqual([]);
    expect((await page("org=nobody-s")).events).toEqual([]);
  });

  it("returns each change's amount, reason or price, so that the console can describe the change", async () => {
    const { orgId } = await openAccount({ credits: 0 });
    const org = `/orgs/${orgId}`;
    await admin("POST", `${org}/credits`, { amount_micro: 5_000_000, reference: "welcome" });
    await admin("PATCH", org, { rpm_limit: 500 });
    await admin("PATCH", org, { status: "suspended" });
    await admin("PATCH", org, { status: "active" });
    const { events } = await page(`org=${orgId}&limit=4`);
    expect(events.map(describeOperatorCall)).toEqual([
      expect.stringMatching(/^\S+ resumed Contract\.$/),
      expect.stringMatching(/^\S+ suspended Contract\.$/),
      expect.stringMatching(/^\S+ changed Contract: requests per 60 s 500\.$/),
      expect.stringMatching(/^\S+ added \$5\.00 to Contract: welcome\.$/),
    ]);
    const list = `l-${crypto.randomUUID().slice(0, 8)}`;
    const from = new Date(Date.now() + 40 * 86_400_000).toISOString();
    const price = { input: 0.6, output: 4 };
    const rows = [{ list, item: "sandbox/echo", from, price }];
    const posted = await admin("POST", "/prices", { rows });
    const { prices } = await posted.json<{ prices: readonly { id: string }[] }>();
    await admin("DELETE", `/prices/${prices[0]?.id}`);
    const row = `sandbox/echo in the list ${list}: $0.60 in, $4.00 out, from `;
    // Other files add events too.
    let { events: some, next_after: after } = await page("limit=100");
    const all = some.map(describeOperatorCall);
    while (after !== null) {
      ({ events: some, next_after: after } = await page(`limit=100&after=${after}`));
      all.push(...some.map(describeOperatorCall));
    }
    for (const verb of ["set", "removed"]) {
      expect(all.filter((text) => text.includes(` ${verb} the price of ${row}`))).toHaveLength(1);
    }
  });

  it("stores no email address, name or secret from a request body", async () => {
    const { orgId } = await openAccount({ credits: 0 });
    const email = "private@example.com";
    await admin("POST", `/orgs/${orgId}/members`, { email, role: "admin" });
    await admin("PATCH", `/orgs/${orgId}`, { name: "Private name" });
    const stored = await env.DB.prepare("SELECT details FROM operator_events WHERE org_id = ?")
      .bind(orgId)
      .all();
    expect(JSON.stringify(stored.results)).toContain("admin");
    expect(JSON.stringify(stored.results)).not.toMatch(/private/i);
  });

  it("keeps operators' events for a year", async () => {
    const now = Date.now();
    const [old, recent] = [367, 365].map((days) => mintId("opev_", now - days * 86_400_000));
    const insert = env.DB.prepare(
      "INSERT INTO operator_events (id, operator, act, target, request_id) VALUES (?, 'old', 'POST /costs', '{}', 'req_1')",
    );
    await env.DB.batch([insert.bind(old), insert.bind(recent)]);
    await deleteOldOperatorEvents(env.DB, now);
    expect((await page("operator=old")).events.map(({ id }) => id)).toEqual([recent]);
  });
});

it("the console has a sentence for each change that an operator can make", () => {
  const changes = OPERATOR_ROUTES.filter(({ method }) => method !== "GET");
  for (const { method, path } of changes) {
    const below = path.replace("/admin/v1", "");
    const act = `${method} ${below.replaceAll(/:(\w+)/g, "{$1}")}`;
    const text = describeOperatorCall({ operator: "eva", act, organization: null });
    expect(text).toMatch(/^eva [a-z ]+\.$/);
    expect(text).not.toContain("called");
  }
});
