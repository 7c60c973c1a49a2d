import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { admin, errorOf, newOrganization, openAccount, send } from "./client.ts";
import type { Account, MadeOrganization } from "./client.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let account: Account;
beforeAll(async () => {
  account = await openAccount({ credits: 5 });
});

const create = (fields: Record<string, unknown> = {}): Promise<Response> =>
  admin("POST", "/orgs", newOrganization(fields));
const read = async (path: string): Promise<Record<string, unknown>> => {
  const response = await admin("GET", path);
  expect(response.status).toBe(200);
  return response.json();
};

describe("POST /admin/v1/orgs", () => {
  it("returns the organization, its owner, and the first key with its secret", async () => {
    const body = newOrganization({ is_personal: true, rpm_limit: 7, key_scope: "global" });
    const response = await admin("POST", "/orgs", body);
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({
      organization: {
        id: expect.stringMatching(UUID),
        name: body["name"],
        slug: body["slug"],
        region: "eu",
        is_personal: true,
        created_at: expect.stringMatching(ISO),
        status: "active",
        rpm_limit: null,
        price_list: null,
        credits_micro: 0,
        held_micro: 0,
        open_holds: 0,
        operator_policy: null,
      },
      member: {
        id: expect.stringMatching(UUID),
        email: body["owner_email"],
        role: "owner",
        created_at: expect.stringMatching(ISO),
      },
      key: {
        id: expect.stringMatching(/^key_[0-9A-Za-z]{24}$/),
        member_id: expect.stringMatching(UUID),
        name: expect.any(String),
        prefix: expect.stringMatching(/^svc_sk_gbl_eu_live_[0-9A-Za-z]{4}$/),
        region: "eu",
        scope: "global",
        rpm_limit: 7,
        created_at: expect.stringMatching(ISO),
        last_used_at: null,
        revoked: false,
        key: expect.stringMatching(/^svc_sk_gbl_eu_live_[0-9A-Za-z]{40}$/),
      },
    });
  });

  it("creates a regional key with 60 requests per minute and a non-personal organization by default", async () => {
    const created = await (await create()).json<MadeOrganization>();
    expect(created.organization).toMatchObject({ is_personal: false });
    expect(created.key).toMatchObject({ scope: "regional", rpm_limit: 60 });
    expect(created.key.key).toMatch(/^svc_sk_eu_live_[0-9A-Za-z]{40}$/);
  });

  it("ignores read-only fields", async () => {
    const body = {
      id: crypto.randomUUID(),
      region: "us",
      status: "suspended",
      credits_micro: 1_000_000,
      held_micro: -5,
      created_at: "1999-01-01T00:00:00.000Z",
    };
    const { organization } = await (await create(body)).json<MadeOrganization>();
    expect(organization).toMatchObject({
      region: "eu",
      status: "active",
      credits_micro: 0,
      held_micro: 0,
    });
    expect(organization.id).not.toBe(body.id);
    const row = await env.DB.prepare("SELECT * FROM balances WHERE org_id = ?")
      .bind(organization.id)
      .first();
    expect(row).toMatchObject({ credits_micro: 0, seq: 0 });
    expect(row?.["epoch"]).not.toBe("mine");
  });

  it("accepts names and slugs of the minimum and maximum length", async () => {
    const ends = crypto.randomUUID().slice(0, 12);
    for (const slug of [`a-${ends}`, `${ends}${"b".repeat(20)}`]) {
      expect((await create({ slug, name: 'Ä "quoted" <b> 🌍' })).status).toBe(201);
    }
  });
});

describe("an invalid POST /admin/v1/orgs", () => {
  it("returns 409 with x-should-retry: false for a taken slug", async () => {
    const body = newOrganization();
    expect((await admin("POST", "/orgs", body)).status).toBe(201);
    const response = await admin("POST", "/orgs", body);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(response, 409)).toMatchObject({
      type: "invalid_request_error",
      param: "slug",
    });
  });

  it("returns 400 without a body and 415 for another content type", async () => {
    expect((await errorOf(await admin("POST", "/orgs"), 400)).param).toBeNull();
    await errorOf(await admin("POST", "/orgs", "[]"), 400);
    const text = { "content-type": "text/plain" };
    const key = "a".repeat(32);
    await errorOf(await send("/admin/v1/orgs", { key, body: "{}", headers: text }), 415);
  });
});

describe("GET /admin/v1/orgs", () => {
  it("returns pages of organizations in the format of GET /admin/v1/orgs/{id}, with the total count", async () => {
    const page = await read("/orgs?limit=100");
    expect(Object.keys(page).toSorted()).toEqual(["limit", "offset", "organizations", "total"]);
    expect(page).toMatchObject({ limit: 100, offset: 0 });
    const one = await read(`/orgs/${account.orgId}`);
    expect(one).toMatchObject({ id: account.orgId, credits_micro: 5, open_holds: 0 });
    expect(await read("/orgs?limit=1")).toMatchObject({ organizations: [expect.any(Object)] });
  });
});
