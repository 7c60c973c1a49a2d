import { beforeAll, describe, expect, it } from "vitest";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { admin, newOrganization, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

type Route = {
  readonly provider: string;
  readonly live: boolean;
  readonly why_not: string | null;
  readonly price: object | null;
  readonly cost: object | null;
  readonly seen_on: string | null;
};
type Model = { readonly id: string; readonly routes: readonly Route[] };

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

describe("GET /admin/v1/catalog", () => {
  it("lists every route of each model with its price or the reason why customers can't buy it", async () => {
    const { models } = await (await admin("GET", "/catalog")).json<{ models: readonly Model[] }>();
    const known = new Map(models.map((model) => [model.id, model]));
    for (const { id, routes } of CATALOG) {
      expect(known.get(id)?.routes).toHaveLength(routes.length);
    }
    for (const route of models.flatMap(({ routes }) => routes)) {
      expect(route.live).toBe(route.price !== null);
      expect(route.live).toBe(route.why_not === null);
    }
    expect(known.get("sandbox/echo")?.routes).toMatchObject([{ provider: "sandbox", live: true }]);
  });

  it("marks as sold exactly the models in the customers' model list", async () => {
    const { models } = await (await admin("GET", "/catalog")).json<{ models: readonly Model[] }>();
    const live = models.filter(({ routes }) => routes.some((route) => route.live));
    const listed = await (
      await send("/v1/models", { key: account.key })
    ).json<{ data: readonly { id: string; alias_of?: string }[] }>();
    expect(live.map(({ id }) => id).toSorted()).toEqual(
      listed.data
        .filter(({ alias_of }) => alias_of === undefined)
        .map(({ id }) => id)
        .toSorted(),
    );
  });
});

const found = async (q: string): Promise<readonly string[]> => {
  const query = new URLSearchParams({ q });
  const { organizations, total } = await (
    await admin("GET", `/orgs?${query.toString()}`)
  ).json<{ organizations: readonly { id: string }[]; total: number }>();
  expect(total).toBeGreaterThanOrEqual(organizations.length);
  return organizations.map(({ id }) => id);
};

describe("GET /admin/v1/orgs?q", () => {
  it("finds organizations by ID, key ID, key prefix, or part of the name, slug or email address", async () => {
    const body = newOrganization({ name: "Zebra % Works", owner_email: "quagga@example.com" });
    const created = await (
      await admin("POST", "/orgs", body)
    ).json<{ organization: { id: string; slug: string }; key: { id: string; prefix: string } }>();
    const { organization, key } = created;
    for (const q of ["zebra %", organization.slug, organization.id, "QUAGGA@", key.id]) {
      expect([q, await found(q)]).toEqual([q, [organization.id]]);
    }
    expect(await found(key.prefix)).toContain(organization.id);
    expect(await found("no such %")).toEqual([]);
  });
});
