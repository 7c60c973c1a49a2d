import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { addMember, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let owner: Account;
beforeAll(async () => {
  owner = await openAccount({ credits: 5 });
});

const freshSlug = (): string => `p-${crypto.randomUUID().slice(0, 18)}`;
const patch = (body: unknown, { orgId, key }: Account = owner): Promise<Response> =>
  send(`/v1/orgs/${orgId}`, { method: "PATCH", key, body });
const read = async ({ orgId, key }: Account = owner): Promise<Record<string, unknown>> => {
  const response = await send(`/v1/orgs/${orgId}`, { key });
  expect(response.status).toBe(200);
  return response.json();
};
const brokenDatabase = (): Env =>
  bindingsWith({
    DB: {
      prepare: (sql: string) => {
        const isCaller = /\bkeys\b/.test(sql) && !sql.startsWith("UPDATE organizations");
        if (isCaller) return env.DB.prepare(sql);
        throw new Error("D1_ERROR: the book is down");
      },
    },
  });

describe("GET /v1/orgs/{id}", () => {
  it("returns all fields of the organization to every role", async () => {
    const record = await read();
    expect(record).toEqual({
      id: owner.orgId,
      name: "Contract",
      slug: expect.stringMatching(/^[a-z0-9-]{3,32}$/),
      region: "eu",
      is_personal: false,
      created_at: expect.stringMatching(ISO),
    });
    for (const role of ["owner", "admin", "billing", "member"] as const) {
      expect(await read(await addMember(owner.orgId, role))).toEqual(record);
    }
  });
});

describe("PATCH /v1/orgs/{id}", () => {
  it("returns the changed organization in the format of GET /v1/orgs/{id}", async () => {
    const before = await read();
    const slug = freshSlug();
    const response = await patch({ name: 'Ä "b" <i> 🌍', slug });
    expect(response.status).toBe(200);
    const after = await response.json();
    expect(after).toEqual({ ...before, name: 'Ä "b" <i> 🌍', slug });
    expect(await read()).toEqual(after);
  });

  it("leaves omitted fields unchanged, even with an empty body", async () => {
    const slug = freshSlug();
    await patch({ name: "one", slug });
    expect(await (await patch({ name: "two" })).json()).toMatchObject({ name: "two", slug });
    const other = freshSlug();
    expect(await (await patch({ slug: other })).json()).toMatchObject({ name: "two", slug: other });
    expect(await (await patch({})).json()).toMatchObject({ name: "two", slug: other });
  });

  it("accepts the organization's current slug, and frees the former slug", async () => {
    const other = await openAccount({ credits: 0 });
    const slug = freshSlug();
    for (let i = 0; i < 2; i++) expect((await patch({ slug })).status).toBe(200);
    expect((await patch({ slug: freshSlug() })).status).toBe(200);
    expect((await patch({ slug }, other)).status).toBe(200);
  });
});

describe("PATCH /v1/orgs/{id} by a role without permission", () => {
  it("returns 403 without reading the body", async () => {
    const before = await read();
    for (const role of ["admin", "billing", "member"] as const) {
      const caller = await addMember(owner.orgId, role);
      for (const body of [{ name: role }, "{"]) {
        expect(await errorOf(await patch(body, caller), 403)).toMatchObject({
          type: "permission_denied",
          code: "role_required",
          message: expect.stringContaining("owner"),
        });
      }
    }
    expect(await read()).toEqual(before);
  });
});

describe("PATCH /v1/orgs/{id} with a taken slug", () => {
  it("returns 409 with param slug and x-should-retry: false, and changes nothing", async () => {
    const other = await openAccount();
    const { slug } = await read(other);
    const before = await read();
    const response = await patch({ name: "never", slug });
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(response, 409)).toMatchObject({
      type: "invalid_request_error",
      param: "slug",
    });
    expect(await read()).toEqual(before);
  });

  it("assigns a slug to one of six organizations that request it concurrently, and rejects five with 409", async () => {
    const racers = await Promise.all(Array.from({ length: 6 }, () => openAccount({ credits: 0 })));
    const slug = freshSlug();
    const answers = await Promise.all(racers.map((racer) => patch({ slug, name: "won" }, racer)));
    const statuses = answers.map((response) => response.status).toSorted((one, two) => one - two);
    expect(statuses).toEqual([200, 409, 409, 409, 409, 409]);
    const records = await Promise.all(racers.map(read));
    const winners = records.filter((record) => record["slug"] === slug);
    expect(winners).toHaveLength(1);
    expect(records.filter((record) => record["name"] === "won")).toEqual(winners);
  });
});

describe("a failed request to /v1/orgs/{id}", () => {
  it("returns 503 with retry-after for GET and PATCH while the database is down", async () => {
    const path = `/v1/orgs/${owner.orgId}`;
    for (const sent of [{}, { method: "PATCH", body: { name: "late" } }]) {
      const response = await send(path, { ...sent, key: owner.key, bindings: brokenDatabase() });
      expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
      expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
    }
  });
});
