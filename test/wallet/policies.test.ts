import { describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import type { Policy, RouteCandidate } from "../../src/shared/policy.ts";
import { evict, gatedKey, runInWallet } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import {
  countWrites,
  failureOf,
  holdOf,
  deleteWalletStorage,
  rowsOf,
  valueOf,
} from "./wallet-fixture.ts";

const ALL: Policy = { allowed_models: null, allowed_providers: null, allowed_data_regions: null };
const candidate = (provider: string, most: number, region = "eu"): RouteCandidate => ({
  sent: "smart",
  model: "acme/one",
  provider,
  region,
  least: micros(most / 10),
  sure: micros(most / 10),
  most: micros(most),
});
const CANDIDATES = [candidate("cheap", 100), candidate("dear", 400), candidate("far", 900, "us")];

/** Returns a request of the key with three routes. */
function requestOf({ booked }: GatedKey, more: Partial<HoldRequest> = {}): HoldRequest {
  return holdOf(900, {
    keyId: booked.keyId,
    hasCap: true,
    least: micros(90),
    sure: micros(90),
    model: { sent: "smart", id: "acme/one" },
    candidates: CANDIDATES,
    ...more,
  });
}

function without(request: HoldRequest): HoldRequest {
  const { candidates, ...rest } = request;
  expect(candidates).toHaveLength(CANDIDATES.length);
  return rest;
}

async function requestHold(key: GatedKey, request = requestOf(key)) {
  return valueOf(await key.stub.admitAndHold(key.hash, request)).held;
}

const owners = ({ booked }: GatedKey) => ["operator", "organization", booked.memberId];

async function set(key: GatedKey, owner: string, policy: Policy | null): Promise<void> {
  if (owner === "organization") valueOf(await key.stub.patchSettings({ policy }));
  else if (owner === "operator") valueOf(await key.stub.setOperatorPolicy(policy, SYSTEM_ACTOR));
  else valueOf(await key.stub.setMemberLimits(owner, { policy, actor: SYSTEM_ACTOR }));
}

describe("a policy on models and providers", () => {
  it.each([0, 1, 2])(
    "takes effect immediately, and after a restart of the wallet: owner %i",
    async (at) => {
      const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
      const owner = owners(key)[at] ?? "";
      expect(valueOf(await requestHold(key))).toMatchObject({ granted: 900, routes: [0, 1, 2] });
      await set(key, owner, { ...ALL, allowed_providers: ["cheap", "dear"] });
      const narrowed = { granted: 400, routes: [0, 1] };
      expect(valueOf(await requestHold(key))).toMatchObject(narrowed);
      await evict(key);
      expect(valueOf(await requestHold(key))).toMatchObject(narrowed);
      await set(key, owner, { ...ALL, allowed_data_regions: ["us"] });
      expect(valueOf(await requestHold(key))).toMatchObject({ granted: 900, routes: [2] });
      await set(key, owner, { ...ALL, allowed_providers: [] });
      const scope = ["operator", "organization", "member"][at];
      expect(failureOf(await requestHold(key))).toEqual({
        kind: "route_not_allowed",
        model: "smart",
        scope,
        field: "allowed_providers",
      });
      await set(key, owner, null);
      expect(valueOf(await requestHold(key))).toMatchObject({ granted: 900, routes: [0, 1, 2] });
    },
  );

  it("ends together with its member, even after a restart", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    const { stub, booked } = key;
    await set(key, booked.memberId, { ...ALL, allowed_providers: ["cheap"] });
    valueOf(await stub.forgetMember(booked.memberId));
    expect(valueOf(await stub.memberLimits(booked.memberId))).toEqual({
      policy: null,
      budgets: [],
    });
    await evict(key);
    expect(valueOf(await stub.memberLimits(booked.memberId))).toMatchObject({ policy: null });
  });

  it("excludes a model, so that the model's budget doesn't affect the request", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    const [one] = CANDIDATES;
    const other = { ...candidate("cheap", 100), sent: "other", model: "other/two" };
    const budgets = [
      {
        id: "bud_other",
        unit: "dollars" as const,
        amount: 0,
        window: "day",
        models: ["other/*"],
        onExceeded: "reject" as const,
        alertAt: null,
      },
    ];
    valueOf(
      await key.stub.patchSettings({ budgets, policy: { ...ALL, allowed_models: ["acme/*"] } }),
    );
    const request = requestOf(key, { candidates: one === undefined ? [] : [one, other] });
    expect(valueOf(await requestHold(key, request))).toMatchObject({ routes: [0] });
  });

  it("rejects a hold that lists no routes, and accepts a hold with routes", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    const request = requestOf(key);
    expect(valueOf(await requestHold(key, without(request)))).toEqual({ granted: 900 });
    await set(key, "organization", { ...ALL, allowed_models: ["acme/*"] });
    const again = requestOf(key);
    expect(failureOf(await requestHold(key, without(again)))).toEqual({
      kind: "candidates_required",
    });
    expect(valueOf(await requestHold(key, again))).toMatchObject({ granted: 900 });
    const peer = requestOf(key, { peer: true });
    expect(failureOf(await key.stub.hold(without(peer), key.hash))).toEqual({
      kind: "candidates_required",
    });
    expect(valueOf(await key.stub.hold(peer, key.hash))).toMatchObject({ routes: [0, 1, 2] });
  });

  it("limits the routes of a retry, which returns the earlier amount", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    await set(key, "organization", { ...ALL, allowed_providers: ["cheap", "dear"] });
    const request = requestOf(key);
    expect(valueOf(await requestHold(key, request))).toMatchObject({
      granted: 400,
      routes: [0, 1],
    });
    await set(key, "organization", null);
    expect(valueOf(await requestHold(key, request))).toMatchObject({
      granted: 400,
      routes: [0, 1],
    });
    await set(key, "organization", { ...ALL, allowed_providers: ["cheap"] });
    expect(valueOf(await requestHold(key, request))).toMatchObject({ granted: 400, routes: [0] });
    expect(valueOf(await key.stub.balance())).toMatchObject({ openHolds: 1, heldMicro: 400 });
  });

  it("isn't revealed in errors for a session", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    const { madeAt } = valueOf(await key.stub.keyStanding(key.hash));
    await set(key, "organization", { ...ALL, allowed_providers: [] });
    const session = {
      id: `ses_${"0".repeat(40)}`,
      madeAt,
      cut: 0,
      createdAt: Date.now(),
      expiresAt: Date.now() + 60_000,
      endUser: null,
      budgetMicro: null,
      allowedModels: null,
      rpmLimit: null,
      origins: null,
    };
    const response = await key.stub.admitAndHold(key.hash, requestOf(key), { session });
    expect(failureOf(valueOf(response).held)).toEqual({
      kind: "model_not_allowed",
      model: "smart",
    });
  });

  it("survives a loss and rebuild of the wallet", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    for (const owner of owners(key)) {
      await set(key, owner, { ...ALL, allowed_providers: ["cheap"] });
    }
    await set(key, "operator", null);
    await key.stub.poke();
    await deleteWalletStorage(key.stub);
    valueOf(await key.stub.rebuild(key.booked.orgId));
    expect(await rowsOf(key.stub, "SELECT name FROM rules WHERE rule IS NOT NULL")).toEqual(
      [{ name: key.booked.memberId }, { name: "organization" }].toSorted((a, b) =>
        a.name < b.name ? -1 : 1,
      ),
    );
    expect(valueOf(await requestHold(key))).toMatchObject({ granted: 100, routes: [0] });
  });

  it("adds no database row when a request is checked", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    const rows = (request: HoldRequest) =>
      runInWallet(key, (wallet, _sql, { storage }) =>
        countWrites(storage, async () => {
          valueOf(valueOf(await wallet.admitAndHold(key.hash, request)).held);
        }),
      );
    await rows(without(requestOf(key)));
    const plain = await rows(without(requestOf(key)));
    await set(key, "organization", { ...ALL, allowed_providers: ["cheap"] });
    expect(await rows(requestOf(key))).toBe(plain);
  });
});
