import { env } from "cloudflare:workers";
import { beforeEach, expect, it, vi } from "vitest";
import { admitting, authenticateBy, keySecrets, WatchedBook } from "../keys/key-fixture.ts";
import {
  call,
  FakeWallet,
  makeOrganization,
  slug,
  valueOf,
  walletOf,
  wallets,
} from "./operator-fixture.ts";
import type { Made } from "./operator-fixture.ts";

beforeEach(() => {
  wallets.clear();
});

/** Returns a page of organizations. `wallets` records the called ones. */
async function listed(query: string): Promise<readonly object[]> {
  wallets.clear();
  const { organizations } = valueOf(await call("GET /orgs", { query: `limit=100&${query}` }));
  return organizations as readonly object[];
}

it("GET /orgs calls wallets only if balances are requested", async () => {
  const made = [await makeOrganization(), await makeOrganization()];
  const [plain] = await listed("");
  expect(wallets.size).toBe(0);
  expect(Object.keys(plain ?? {})).not.toContain("credits_micro");
  expect(await listed("balance=false")).toContainEqual(plain);
  expect(wallets.size).toBe(0);
  const [full] = await listed("balance=true");
  expect(wallets.size).toBeGreaterThanOrEqual(made.length);
  const standing = { credits_micro: 0, held_micro: 0, open_holds: 0, operator_policy: null };
  expect(full).toEqual({ ...plain, ...standing });
});

it("POST /orgs creates an organization with an owner, a balance of 0 and a key that works", async () => {
  const body = {
    name: "Acme",
    slug: slug(),
    owner_email: "o@example.com",
    key_scope: "global",
    rpm_limit: 9,
  };
  const made = valueOf(await call("POST /orgs", { body: { ...body, credits_micro: 5, id: "x" } }));
  const { organization, member, key } = made as Made;
  expect(organization).toEqual({
    id: organization.id,
    name: "Acme",
    slug: body.slug,
    region: "eu",
    is_personal: false,
    created_at: expect.stringMatching(/Z$/),
    status: "active",
    rpm_limit: null,
    price_list: null,
    credits_micro: 0,
    held_micro: 0,
    open_holds: 0,
    operator_policy: null,
  });
  expect(member).toMatchObject({ email: "o@example.com", role: "owner" });
  expect(key).toMatchObject({ scope: "global", rpm_limit: 9, region: "eu", revoked: false });
  expect(key.key).toMatch(/^svc_sk_gbl_eu_live_/);
  const balance = await env.DB.prepare("SELECT * FROM balances WHERE org_id = ?")
    .bind(organization.id)
    .first();
  expect(balance).toMatchObject({
    seq: 0,
    credits_micro: 0,
    epoch: walletOf(organization.id).epoch,
  });
  const caller = await authenticateBy({
    authorization: `Bearer ${key.key}`,
    keySecrets: keySecrets(),
    ...admitting(),
    wallet: () => ({
      admit: async (hash) => {
        const said = await env.KEY_REGISTER.getByName(hash).admit();
        return said.ok ? { ok: true, value: said } : said;
      },
    }),
  });
  expect(caller).toMatchObject({
    ok: true,
    value: { caller: { orgId: organization.id, memberId: member.id, keyId: key.id } },
  });
});

it("POST /orgs gives a slug to one of several concurrent organizations, and creates no wallet for the others", async () => {
  const body = { name: "Acme", slug: slug(), owner_email: "o@example.com" };
  const answers = await Promise.all(Array.from({ length: 5 }, () => call("POST /orgs", { body })));
  expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
  const refused = answers.filter((answer) => !answer.ok);
  for (const answer of refused) {
    expect(answer).toMatchObject({ failure: { kind: "conflict", param: "slug" } });
  }
  expect([...wallets.values()].filter((wallet) => wallet.epoch !== null)).toHaveLength(1);
});

it("POST /orgs writes nothing if the wallet fails, keeps the wallet if the database fails, and returns 503 in both cases", async () => {
  const body = { name: "Acme", slug: slug(), owner_email: "o@example.com" };
  const down = vi.spyOn(FakeWallet.prototype, "create").mockImplementation(() => {
    throw Object.assign(new Error("lost"), { remote: true });
  });
  expect(await call("POST /orgs", { body })).toMatchObject({
    failure: { kind: "storage_unavailable" },
  });
  down.mockRestore();
  const book = new WatchedBook();
  book.broken = true;
  expect(await call("POST /orgs", { body })).toMatchObject({
    failure: { kind: "storage_unavailable" },
  });
  book.restore();
  expect((await call("POST /orgs", { body })).ok).toBe(true);
});

it.each([
  ["name", { name: "" }],
  ["name", { name: "a\nb" }],
  ["name", { name: undefined }],
  ["slug", { slug: "a_b" }],
  ["slug", { slug: "Abc" }],
  ["owner_email", { owner_email: "nobody" }],
  ["is_personal", { is_personal: "yes" }],
  ["key_scope", { key_scope: "world" }],
  ["rpm_limit", { rpm_limit: 0 }],
  ["rpm_limit", { rpm_limit: 1001 }],
  ["rpm_limit", { rpm_limit: 1.5 }],
  ["rpm_limit", { rpm_limit: "60" }],
])("POST /orgs returns 400 for an invalid %s, and creates nothing", async (param, wrong) => {
  const body = { name: "Acme", slug: slug(), owner_email: "o@example.com", ...wrong };
  expect(await call("POST /orgs", { body })).toMatchObject({
    failure: { kind: "invalid_request", param },
  });
  expect(wallets.size).toBe(0);
});

it("POST /orgs returns 400 for a body that is not an object", async () => {
  for (const body of [null, [], "x", 5]) {
    expect(await call("POST /orgs", { body })).toMatchObject({
      failure: { kind: "invalid_request" },
    });
  }
});

it("GET /orgs lists organizations in a stable order, page by page, even without a wallet", async () => {
  const made = [await makeOrganization(), await makeOrganization(), await makeOrganization()];
  const { total } = valueOf(await call("GET /orgs", { query: "limit=1" })) as { total: number };
  const ids: string[] = [];
  for (let offset = 0; offset < total; offset += 2) {
    const page = valueOf(await call("GET /orgs", { query: `limit=2&offset=${offset}` }));
    expect(page).toMatchObject({ total, limit: 2, offset });
    ids.push(...(page["organizations"] as { id: string }[]).map(({ id }) => id));
  }
  expect(new Set(ids).size).toBe(total);
  expect(ids).toEqual(expect.arrayContaining(made.map(({ organization }) => organization.id)));
  const [first] = made;
  if (first === undefined) throw new Error("nothing was made");
  walletOf(first.organization.id).down = true;
  const params = { id: first.organization.id };
  expect(valueOf(await call("GET /orgs/:id", { params }))).toMatchObject({
    id: first.organization.id,
    credits_micro: null,
  });
  for (const query of ["limit=0", "limit=101", "limit=x", "offset=-1", "limit=1.5"]) {
    expect(await call("GET /orgs", { query })).toMatchObject({
      failure: { kind: "invalid_request", param: query.split("=")[0] },
    });
  }
});
