import { describe, expect, it } from "vitest";
import { budgetsSchema } from "../../src/shared/budgets.ts";
import type { Budget } from "../../src/shared/budgets.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { Session } from "../../src/shared/session.ts";
import { evict, gatedKey } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { sessionOf } from "./session-fixture.ts";
import { failureOf, holdOf, rowsOf, settle, valueOf } from "./wallet-fixture.ts";

const BUDGET: Budget = {
  id: "lim_1",
  unit: "dollars",
  amount: 100,
  window: "60m",
  models: null,
  onExceeded: "pause",
  alertAt: null,
};

async function limitedKey(): Promise<GatedKey> {
  const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
  valueOf(await key.stub.patchSettings({ budgets: [BUDGET] }));
  return key;
}

async function requestHold(key: GatedKey, amount: number, session?: Session) {
  const request = holdOf(amount, { keyId: key.booked.keyId });
  const shown = session && { session };
  return { request, held: valueOf(await key.stub.admitAndHold(key.hash, request, shown)).held };
}

async function spend(key: GatedKey, amount: number, session?: Session): Promise<void> {
  const { request, held } = await requestHold(key, amount, session);
  valueOf(held);
  valueOf(await settle(key.stub, request.id, amount));
}

const pausesOf = async ({ stub }: GatedKey) =>
  valueOf(await stub.pauses(null)).map(({ pause }) => pause);

describe("a budget with on_exceeded pause", () => {
  it("pauses the budget's owner when a charge reaches the limit, until a person ends the pause", async () => {
    const key = await limitedKey();
    await spend(key, 99);
    expect(await pausesOf(key)).toEqual([]);
    await spend(key, 1);
    const [pause] = await pausesOf(key);
    expect(pause).toMatchObject({ scope: "organization", source: "budget", budgetId: "lim_1" });
    await evict(key);
    expect(failureOf((await requestHold(key, 1)).held)).toMatchObject({
      kind: "paused",
      until: null,
    });
    valueOf(await key.stub.patchSettings({ budgets: [{ ...BUDGET, amount: 200 }] }));
    expect(failureOf((await requestHold(key, 1)).held)).toMatchObject({ kind: "paused" });
    const ending = { id: pause?.id ?? "", source: "member", actor: SYSTEM_ACTOR } as const;
    valueOf(await key.stub.endPause(ending));
    valueOf((await requestHold(key, 1)).held);
    const events = await rowsOf(key.stub, "SELECT data FROM events WHERE type = 'pause.created'");
    expect(JSON.parse(String(events[0]?.["data"]))).toMatchObject({ budget_id: "lim_1" });
  });

  it.each([
    ["pauses the budget's owner at a rejection if at most 10% is left", 90, 1],
    ["doesn't pause the budget's owner at a rejection if more than 10% is left", 89, 0],
  ] as const)("%s", async (_, spent, pauses) => {
    const key = await limitedKey();
    await spend(key, spent);
    expect(failureOf((await requestHold(key, 1000)).held)).toMatchObject({
      kind: "budget_exceeded",
    });
    expect(await pausesOf(key)).toHaveLength(pauses);
  });

  it("doesn't pause the budget's owner if a request is rejected only because of open holds", async () => {
    const key = await limitedKey();
    await spend(key, 95);
    valueOf((await requestHold(key, 4)).held);
    expect(failureOf((await requestHold(key, 3)).held)).toMatchObject({ onlyHolds: true });
    expect(await pausesOf(key)).toEqual([]);
  });

  it.each([
    ["used", 1],
    ["new", 0],
  ] as const)(
    "doesn't pause the budget's owner if the budget of a %s session is used up",
    async (_, requests) => {
      const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
      const budget = { ...BUDGET, unit: "requests" } as const;
      valueOf(await key.stub.patchSettings({ budgets: [{ ...budget, amount: 10 }] }));
      const own: Budget = { ...budget, id: "lim_2", amount: requests, onExceeded: "reject" };
      const session = await sessionOf(key, { budgets: [own] });
      if (requests > 0) await spend(key, 1, session);
      for (let count = requests; count < 9; count++) await spend(key, 1);
      valueOf((await requestHold(key, 1)).held);
      const { held } = await requestHold(key, 1, session);
      expect(failureOf(held)).toMatchObject({ kind: "budget_exceeded", scope: "session" });
      expect(await pausesOf(key)).toEqual([]);
    },
  );

  it("can't be limited to certain models", () => {
    const budget = { limit_dollars: 1, window: "day", on_exceeded: "pause" };
    const parse = (more: object) => budgetsSchema(8).safeParse([{ ...budget, ...more }]);
    expect([parse({}).success, parse({ models: null }).success]).toEqual([true, true]);
    expect(parse({ models: ["a/*"] }).error?.issues).toMatchObject([{ path: [0, "on_exceeded"] }]);
  });
});

describe("a budget with on_exceeded reject", () => {
  it("rejects requests when used up, without pausing the budget's owner", async () => {
    const key = await limitedKey();
    valueOf(await key.stub.patchSettings({ budgets: [{ ...BUDGET, onExceeded: "reject" }] }));
    await spend(key, 100);
    expect(failureOf((await requestHold(key, 1)).held)).toMatchObject({ kind: "budget_exceeded" });
    expect(await pausesOf(key)).toEqual([]);
  });
});
