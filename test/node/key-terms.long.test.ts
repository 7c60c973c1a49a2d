import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import { sumOf } from "./support/account.ts";
import { call, openRemoteAccount, statusOf } from "./support/peer-keys.ts";
import {
  AFFORDABLE,
  REQUESTS,
  ECHO,
  FLOOD_BINDINGS,
  flood,
  openChat,
  STALL,
} from "./support/flood.ts";
import type { Rejected } from "./support/flood.ts";
import { startTwoRegions } from "./support/two-regions.ts";

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: FLOOD_BINDINGS });
});
afterAll(() => regions.stop());

type Where = "eu" | "us";
const EVERYWHERE = [
  ["home", "eu"],
  ["a peer", "us"],
] as const;

type Limited = { readonly id: string; readonly key: string };

/** Creates an EU organization with a global key that has these limits. */
async function limited(terms: object): Promise<{ readonly owner: Account; readonly one: Limited }> {
  const owner = await openRemoteAccount(regions);
  const body = { name: "limited", scope: "global", rpm_limit: 1000, ...terms };
  const response = await call(regions.eu, owner.key, "/keys", { body });
  expect(response.status).toBe(201);
  return { owner, one: (await response.json()) as Limited };
}

function pays(where: Where, { key }: Limited, body: object): Promise<Response> {
  return call(regions[where], key, "/chat/completions", { body });
}

async function refusalOf(where: Where, one: Limited, body: object): Promise<Rejected> {
  const response = await pays(where, one, body);
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  return { status: response.status, error };
}

/** Returns the key's remaining limits, as it reads them itself. */
async function keyStatus(where: Where, { key }: Limited) {
  const response = await call(regions[where], key, "/key");
  expect(response.status).toBe(200);
  return (await response.json()) as { spent_dollars: number; budget_dollars: number };
}

/** Returns the maximum cost of a request from its rejection. */
async function worstCase(body: object): Promise<number> {
  const { one } = await limited({ budget_dollars: 0 });
  return Number((await refusalOf("eu", one, body)).error["required_micro"]);
}

/** Creates a session with this budget for a new organization's key. */
async function session(terms: object): Promise<{ readonly owner: Account; readonly one: Limited }> {
  const owner = await openRemoteAccount(regions);
  const response = await call(regions.eu, owner.key, "/sessions", { body: terms });
  expect(response.status).toBe(201);
  const { id, token } = (await response.json()) as { id: string; token: string };
  return { owner, one: { id, key: token } };
}

const FORMS = [
  ["streams", true],
  ["JSON", false],
] as const;

describe.each([
  { kind: "a key", name: "home", where: "eu", make: limited },
  { kind: "a key", name: "a peer", where: "us", make: limited },
  { kind: "a session", name: "home", where: "eu", make: session },
  { kind: "a session", name: "a peer", where: "us", make: session },
] as const)(
  "$kind whose budget covers 20 requests at their maximum cost, at $name",
  ({ where, make }) => {
    it.each(FORMS)("admits exactly 20 of 200 concurrent requests: %s", async (_, stream) => {
      const body = { ...STALL, stream };
      const each = await worstCase(body);
      const micros = AFFORDABLE * each;
      const { owner, one } = await make({ budget_dollars: micros / 1e6 });
      // the region has cached the key
      expect((await pays(where, one, { ...ECHO, max_tokens: 0 })).status).toBe(400);
      const { granted, refused } = await flood(owner, () =>
        openChat(regions[where], one.key, body),
      );
      expect(granted).toHaveLength(AFFORDABLE);
      expect(refused.length).toBeGreaterThanOrEqual(REQUESTS - AFFORDABLE);
      for (const answer of refused) {
        expect(answer).toMatchObject({
          status: 402,
          error: { code: "key_budget_exceeded", budget_micro: micros, required_micro: each },
        });
      }
      expect(await owner.fullBalance()).toMatchObject({
        held_micro: micros,
        open_holds: AFFORDABLE,
      });
      await Promise.all(granted.map((connection) => connection.reset()));
      await owner.resolved();

      // Charged responses spend the rest completely.
      const answered = await untilRefused(where, one, { ...ECHO, stream });
      expect(answered).toBeGreaterThan(0);
      await owner.resolved();
      const charges = (await owner.ledger()).filter((row) => row.kind === "usage");
      const spent = -sumOf(charges);
      expect(spent).toBeGreaterThan(0);
      expect(spent).toBeLessThanOrEqual(micros);
      expect((await keyStatus(where, one)).spent_dollars).toBeCloseTo(spent / 1e6, 9);
      expect(await owner.differences()).toEqual([]);
    });
  },
);

/** Sends sequential completions until the budget is used up. Returns their number. */
async function untilRefused(where: Where, one: Limited, body: object): Promise<number> {
  for (let answered = 0; ; answered += 1) {
    const response = await pays(where, one, body);
    const text = await response.text();
    if (text.includes("key_budget_exceeded")) return answered;
    expect(response.status, text).toBe(200);
  }
}

describe.each(EVERYWHERE)("a limit of a key at %s", (_name, where) => {
  it("returns 403 for a model that isn't allowed by name or author", async () => {
    const { one } = await limited({ allowed_models: ["sandbox/echo"] });
    expect(await refusalOf(where, one, { ...ECHO, model: "sandbox/think" })).toMatchObject({
      status: 403,
      error: { code: "model_not_allowed", param: "model" },
    });
    expect((await pays(where, one, ECHO)).status).toBe(200);
  });

  it("allows a listed model under all its names, but a listed alias only under the alias", async () => {
    for (const [listed, statuses] of [
      ["echo", [200, 200, 200, 403]],
      ["smart", [403, 403, 200, 403]],
    ] as const) {
      const { one } = await limited({ allowed_models: [listed] });
      const models = ["sandbox/echo", "echo", "smart", "think"];
      const answers = await Promise.all(
        models.map((model) => pays(where, one, { ...ECHO, model })),
      );
      expect(answers.map(({ status }) => status)).toEqual(statuses);
    }
  });

  it("returns 400 for an end user other than the key's own, which is the default", async () => {
    const { owner, one } = await limited({ end_user: "ann" });
    expect(await refusalOf(where, one, { ...ECHO, user: "bob" })).toMatchObject({
      status: 400,
      error: { param: "user" },
    });
    expect((await pays(where, one, ECHO)).status).toBe(200);
    await owner.resolved();
    const users = await call(regions.eu, owner.key, "/users/ann");
    expect(await users.json()).toMatchObject({ external_id: "ann" });
  });

  it("returns 429 once the token limit is used up, and 400 for a request above the whole limit", async () => {
    const { owner, one } = await limited({ tpm_limit: 300 });
    const body = { ...ECHO, max_tokens: 150 };
    const first = await pays(where, one, body);
    expect(first.status).toBe(200);
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBe("300");
    await first.text();
    await owner.resolved(); // its charge replaces its reservation
    const connection = await openChat(regions[where], one.key, {
      ...STALL,
      max_tokens: 200,
      stream: true,
    });
    await connection.readUntil((received) => received.includes("data: "));
    expect(await refusalOf(where, one, body)).toMatchObject({
      status: 429,
      error: { code: "tokens", type: "rate_limit_exceeded" },
    });
    expect(await refusalOf(where, one, { ...ECHO, max_tokens: 400 })).toMatchObject({
      status: 400,
      error: { code: "tokens" },
    });
    await connection.reset();
  });

  it("returns 403 when the key changes keys, quotas, settings or its own limits", async () => {
    const { owner, one } = await limited({ budget_dollars: 0.01 });
    const { orgId } = owner;
    const attempts = [
      ["/keys", { method: "POST", body: { name: "mine" } }],
      ["/keys", {}],
      [`/keys/${one.id}`, { method: "PATCH", body: { budget_dollars: 1 } }],
      [`/keys/${one.id}`, { method: "PATCH", body: { budget_dollars: null } }],
      [`/keys/${one.id}`, { method: "DELETE" }],
      ["/users", { method: "POST", body: { external_id: "x", daily_quota_micro: null } }],
      [`/orgs/${orgId}/settings`, { method: "PATCH", body: { low_balance_micro: 1 } }],
      [`/orgs/${orgId}`, { method: "PATCH", body: { name: "mine" } }],
      ["/usage?from=2026-01-01&to=2026-01-02&group_by=day", {}],
    ] as const;
    for (const [path, of] of attempts) {
      const response = await call(regions[where], one.key, path, of);
      const text = await response.text();
      expect([response.status, text.includes("key_is_limited")], `${path} ${text}`).toEqual([
        403,
        true,
      ]);
    }
    expect(await keyStatus(where, one)).toMatchObject({ budget_dollars: 0.01 });
  });

  it("takes a new value in both regions before the PATCH returns, whichever region is called", async () => {
    const { owner, one } = await limited({ allowed_models: ["sandbox/echo"] });
    for (const at of ["eu", "us"] as const) expect((await pays(at, one, ECHO)).status).toBe(200);
    const patch = (body: object) =>
      statusOf(regions[where], owner.key, `/keys/${one.id}`, { method: "PATCH", body });
    expect(await patch({ allowed_models: ["sandbox/think"] })).toBe(200);
    for (const at of ["us", "eu"] as const) {
      expect((await refusalOf(at, one, ECHO)).error["code"]).toBe("model_not_allowed");
    }
    expect(await patch({ allowed_models: null, budget_dollars: 0 })).toBe(200);
    for (const at of ["us", "eu"] as const) {
      expect((await refusalOf(at, one, ECHO)).error["code"]).toBe("key_budget_exceeded");
    }
  });

  it("returns 401 after expiry, for paid requests and reads", async () => {
    const { owner, one } = await limited({});
    for (const at of ["eu", "us"] as const) expect((await pays(at, one, ECHO)).status).toBe(200);
    const expires = new Date(Date.now() + 2500).toISOString();
    const patch = { method: "PATCH", body: { expires_at: expires } };
    expect(await statusOf(regions[where], owner.key, `/keys/${one.id}`, patch)).toBe(200);
    await sleep(Math.max(0, Date.parse(expires) - Date.now()));
    expect((await pays(where, one, ECHO)).status).toBe(401);
    for (const at of ["eu", "us"] as const) {
      expect(await statusOf(regions[at], one.key, "/key")).toBe(401);
      expect(await statusOf(regions[at], one.key, "/models")).toBe(401);
    }
  });
});
