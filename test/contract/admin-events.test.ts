import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { forgetOperatorEvents } from "../../src/operator/operator-events.store.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { actSentence } from "../../src/console/browser/lib/operator-acts.ts";
import { admin, bindingsWith, newOrganization, openAccount, send } from "./client.ts";
import type { MadeOrganization } from "./client.ts";

type OperatorEvent = {
  readonly id: string;
  readonly operator: string;
  readonly act: string;
  readonly organization: { readonly id: string; readonly name: string } | null;
  readonly target: object;
};
type Page = { readonly events: readonly OperatorEvent[]; readonly next_after: string | null };

const page = async (query: string): Promise<Page> =>
  (await admin("GET", `/events?${query}`)).json();

describe("GET /admin/v1/events", () => {
  it("lists each change of an operator with its organization and target, and no rejected one", async () => {
    const { orgId, keyId } = await openAccount({ credits: 0 });
    const key = `/orgs/${orgId}/keys/${keyId}`;
    await admin("PATCH", key, { name: "Renamed" });
    expect((await admin("PATCH", key, { rpm_limit: -1 })).status).toBe(400);
    await admin("GET", key);
    const { events } = await page(`org=${orgId}`);
    expect(events).toMatchObject([
      {
        act: "PATCH /orgs/{id}/keys/{key_id}",
        organization: { id: orgId },
        target: { key_id: keyId },
      },
      { act: "POST /orgs", organization: { id: orgId, name: "Contract" }, target: {} },
    ]);
  });

  it("filters by operator, organization and time, and continues with next_after", async () => {
    const eva = "eva".padEnd(32, "x");
    const bindings = bindingsWith({ ADMIN_TOKENS: `eva:${eva}` });
    const body = newOrganization();
    const made = await send("/admin/v1/orgs", { key: eva, bindings, body });
    const { organization } = await made.json<MadeOrganization>();
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

  it("keeps events for a year", async () => {
    const now = Date.now();
    const [old, recent] = [367, 365].map((days) => mintId("opev_", now - days * 86_400_000));
    const insert = env.DB.prepare(
      "INSERT INTO operator_events (id, operator, act, target, request_id) VALUES (?, 'old', 'POST /costs', '{}', 'req_1')",
    );
    await env.DB.batch([insert.bind(old), insert.bind(recent)]);
    await forgetOperatorEvents(env.DB, now);
    expect((await page("operator=old")).events.map(({ id }) => id)).toEqual([recent]);
  });

  it.each(["after=x", "limit=0", "from=yesterday"])("rejects %s with 400", async (query) => {
    expect((await admin("GET", `/events?${query}`)).status).toBe(400);
  });
});

it("the console describes each change of the operators' API in a sentence", () => {
  const changes = OPERATOR_ROUTES.filter(({ method }) => method !== "GET");
  for (const { method, path } of changes) {
    const below = path.replace("/admin/v1", "");
    const act = `${method} ${below.replaceAll(/:(\w+)/g, "{$1}")}`;
    const text = actSentence({ operator: "eva", act, organization: null });
    expect(text).toMatch(/^eva [a-z ]+\.$/);
    expect(text).not.toContain("called");
  }
});
