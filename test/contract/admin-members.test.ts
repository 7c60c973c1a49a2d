import { beforeEach, describe, expect, it } from "vitest";
import { addMember, admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

type Member = { readonly id: string; readonly email: string; readonly role: string };

let owner: Account;
beforeEach(async () => {
  owner = await openAccount();
});

const members = (): string => `/orgs/${owner.orgId}/members`;
const list = async (): Promise<Member[]> => {
  const response = await admin("GET", members());
  expect(response.status).toBe(200);
  return (await response.json<{ members: Member[] }>()).members;
};
const add = (email: unknown, role: unknown = "member"): Promise<Response> =>
  admin("POST", members(), { email, role });
const patch = (id: string, body: unknown): Promise<Response> =>
  admin("PATCH", `${members()}/${id}`, body);
const remove = (id: string): Promise<Response> => admin("DELETE", `${members()}/${id}`);
const roles = async (): Promise<string[]> => (await list()).map((member) => member.role);

describe("GET /admin/v1/orgs/{id}/members", () => {
  it("lists all members in order, with exactly the documented fields", async () => {
    const second = await (await add("Second@Example.com", "billing")).json();
    expect(await (await admin("GET", members())).json()).toEqual({
      members: [
        {
          id: owner.memberId,
          email: "owner@example.com",
          role: "owner",
          created_at: expect.stringMatching(ISO),
        },
        second,
      ],
    });
  });
});

describe("POST /admin/v1/orgs/{id}/members", () => {
  it("returns 201 with the new member, and ignores read-only fields", async () => {
    const body = {
      id: crypto.randomUUID(),
      created_at: "1999-01-01T00:00:00.000Z",
    };
    const response = await admin("POST", members(), {
      email: "A@b.example",
      role: "admin",
      ...body,
    });
    expect(response.status).toBe(201);
    const member = await response.json<Member>();
    expect(member).toEqual({
      id: expect.stringMatching(UUID),
      email: "A@b.example",
      role: "admin",
      created_at: expect.stringMatching(/^20[2-9]/),
    });
    expect(member.id).not.toBe(body.id);
    expect(await list()).toContainEqual(member);
  });

  it("returns 409 with param email if a member already has the address, in upper or lower case", async () => {
    for (const email of ["owner@example.com", "OWNER@Example.COM"]) {
      const response = await add(email, "owner");
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect((await errorOf(response, 409)).param).toBe("email");
    }
    expect(await roles()).toEqual(["owner"]);
  });

  it("accepts the email address of a removed member or of another organization's member", async () => {
    const other = await openAccount();
    const path = `/orgs/${other.orgId}/members`;
    const body = { email: "twice@example.com", role: "member" };
    expect((await admin("POST", path, body)).status).toBe(201);
    const first = await (await add(body.email)).json<Member>();
    expect((await remove(first.id)).status).toBe(200);
    expect((await patch(first.id, { role: "admin" })).status).toBe(404);
    const second = await (await add(body.email)).json<Member>();
    expect(second.id).not.toBe(first.id);
    expect(await list()).toHaveLength(2);
  });

  it("adds one member for ten concurrent calls with one email address, and rejects the nine others with 409", async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        add(i % 2 === 0 ? "one@example.com" : "One@example.com"),
      ),
    );
    const statuses = answers.map((answer) => answer.status).toSorted((one, two) => one - two);
    expect(statuses).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
    expect(await list()).toHaveLength(2);
  });
});

describe("PATCH /admin/v1/orgs/{id}/members/{member_id}", () => {
  it("returns the member in the list's format, and leaves omitted fields unchanged", async () => {
    const member = await (await add("a@example.com")).json<Member>();
    const promoted = await (await patch(member.id, { role: "billing" })).json();
    expect(promoted).toEqual({ ...member, role: "billing" });
    const moved = await (await patch(member.id, { email: "b@example.com" })).json();
    expect(moved).toEqual({ ...member, role: "billing", email: "b@example.com" });
    expect(await (await patch(member.id, {})).json()).toEqual(moved);
    expect(await list()).toContainEqual(moved);
  });

  it("applies a member's raised or lowered role to the member's next request", async () => {
    const { memberId, key, orgId } = await addMember(owner.orgId, "member");
    const rename = (): Promise<Response> =>
      send(`/v1/orgs/${orgId}`, { method: "PATCH", key, body: { name: "by a member" } });
    for (const [role, status] of [
      ["member", 403],
      ["owner", 200],
      ["admin", 403],
      ["owner", 200],
    ] as const) {
      expect((await patch(memberId, { role })).status).toBe(200);
      expect([role, (await rename()).status]).toEqual([role, status]);
    }
  });

  it("accepts a case change in the member's address, but returns 409 for another member's address", async () => {
    const member = await (await add("a@example.com")).json<Member>();
    expect((await patch(member.id, { email: "A@example.com" })).status).toBe(200);
    const response = await patch(member.id, { email: "Owner@Example.com", role: "admin" });
    expect((await errorOf(response, 409)).param).toBe("email");
    expect((await list())[1]).toEqual({ ...member, email: "A@example.com" });
  });

  it("returns 409 last_owner if the only owner is demoted, but allows demoting one of several owners", async () => {
    const response = await patch(owner.memberId, { role: "admin", email: "new@example.com" });
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(response, 409)).toMatchObject({ code: "last_owner", param: "role" });
    expect(await list()).toMatchObject([{ role: "owner", email: "owner@example.com" }]);
    expect((await patch(owner.memberId, { role: "owner" })).status).toBe(200);
    await add("second@example.com", "owner");
    expect((await patch(owner.memberId, { role: "member" })).status).toBe(200);
    expect(await roles()).toEqual(["member", "owner"]);
  });
});
