import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import {
  burst,
  evict,
  gatedKey,
  runInWallet,
  MINUTE_MS,
  statusOf,
} from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { countWrites, differences, failureOf, holdOf, rowsOf, valueOf } from "./wallet-fixture.ts";

describe("a request that a wallet admits with a hold", () => {
  it("returns the key's remaining requests per minute and the held amount", async () => {
    const key = await gatedKey({ rpmLimit: 3, balance: 100 });
    const { hash, stub } = key;
    const answer = valueOf(await stub.admitAndHold(hash, holdOf(30, { most: micros(200) })));
    expect(answer).toEqual({
      admitted: { limit: 3, remaining: 2, resetMs: MINUTE_MS },
      held: { ok: true, value: { granted: 100 } },
    });
    expect(await statusOf(key)).toEqual({ admitted: 1, openHolds: 1, held: 100 });
  });

  it("needs one transaction and two rows, which the wallet stores before the call returns", async () => {
    const key = await gatedKey({ balance: 100 });
    valueOf(await key.stub.admitAndHold(key.hash, holdOf(1))); // sets the alarm
    const seen = await runInWallet(key, async (wallet, sql, { storage }) => {
      const rows = (table: string): number =>
        sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n;
      const rowCounts: number[] = [];
      const written = await countWrites(storage, async () => {
        const answer = wallet.admitAndHold(key.hash, holdOf(1));
        rowCounts.push(rows("admissions"), rows("requests"));
        valueOf(valueOf(await answer).held);
      });
      return { begun: rowCounts, written };
    });
    expect(seen).toEqual({ begun: [2, 2], written: 2 });
  });

  it("succeeds exactly as often as the balance and rate limit allow for 200 concurrent requests", async () => {
    const key = await gatedKey({ rpmLimit: 150, balance: 1000 });
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => key.stub.admitAndHold(key.hash, holdOf(10))),
    );
    const withHold = answers.filter((answer) => answer.ok && answer.value.held.ok);
    expect([answers.filter((answer) => answer.ok).length, withHold.length]).toEqual([150, 100]);
    expect(await statusOf(key)).toEqual({ admitted: 150, openHolds: 100, held: 1000 });
    expect(await differences(key.stub)).toEqual([]);
  });
});

describe("a request that a wallet admits without a hold", () => {
  const refusals: [string, (key: GatedKey) => Promise<unknown>, object][] = [
    ["insufficient credits", () => Promise.resolve(), { kind: "balance_too_low" }],
    [
      "a suspended organization",
      ({ stub }) => stub.configure({ suspended: true }),
      { kind: "organization_suspended" },
    ],
    [
      "a conflict with the database",
      async ({ stub, booked }) => {
        valueOf(await stub.poke());
        await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?")
          .bind(booked.orgId)
          .run();
        await stub.credit({ amountMicro: micros(1), reference: "one more" });
        valueOf(await stub.poke());
      },
      { kind: "storage_unavailable" },
    ],
    [
      "the organization's rate limit",
      async ({ stub }) => {
        await stub.configure({ rpmLimit: 1 });
        valueOf(await stub.hold(holdOf(0)));
      },
      { kind: "rate_limited", scope: "organization" },
    ],
  ];
  it.each(refusals)("counts against the key's rate limit: %s", async (_, arrange, refusal) => {
    const key = await gatedKey({ rpmLimit: 4, balance: 5 });
    await arrange(key);
    const before = valueOf(await key.stub.balance());
    const { admitted, held } = valueOf(await key.stub.admitAndHold(key.hash, holdOf(10)));
    expect(admitted).toMatchObject({ limit: 4, remaining: 3 });
    expect(failureOf(held)).toMatchObject(refusal);
    expect(valueOf(await key.stub.balance())).toEqual(before);
    await evict(key);
    // managing continues if the organization is suspended, in conflict or out of credits
    expect(await burst(key, 9)).toBe(3);
  });

  it("counts against the rate limit even if the Idempotency-Key was already used", async () => {
    const key = await gatedKey({ rpmLimit: 4, balance: 100 });
    const named = { idempotency: { name: "n", body: "b" } };
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, holdOf(1, named))).held);
    const { held } = valueOf(await key.stub.admitAndHold(key.hash, holdOf(1, named)));
    expect(failureOf(held)).toEqual({ kind: "idempotency_in_progress" });
    expect(await statusOf(key)).toEqual({ admitted: 2, openHolds: 1, held: 1 });
  });

  it("counts against the rate limit even if the hold throws an exception", async () => {
    const key = await gatedKey({ rpmLimit: 4, balance: 100 });
    await runInWallet(key, async (wallet) => {
      const wrong = { ...holdOf(1), least: Number.NaN as never };
      await expect(wallet.admitAndHold(key.hash, wrong)).rejects.toThrow("whole micros");
    });
    expect(await burst(key, 9)).toBe(3);
    expect(await statusOf(key)).toEqual({ admitted: 4, openHolds: 0, held: 0 });
  });
});

describe("a request that a wallet doesn't admit", () => {
  it.each([
    ["over the rate limit", "rate_limited"],
    ["revoked", "invalid_api_key"],
  ])("creates no hold and no row if the key is %s", async (what, kind) => {
    const key = await gatedKey({ rpmLimit: 1, balance: 100 });
    expect(await burst(key, 1)).toBe(1);
    if (what === "revoked") valueOf(await key.stub.revokeKey(key.hash, 1));
    const before = await statusOf(key);
    const written = await runInWallet(key, (wallet, _sql, { storage }) =>
      countWrites(storage, async () => {
        const named = { externalId: "u", idempotency: { name: "n", body: "b" } };
        expect(failureOf(await wallet.admitAndHold(key.hash, holdOf(1, named)))).toMatchObject({
          kind,
        });
      }),
    );
    expect(written).toBe(0);
    expect(await statusOf(key)).toEqual(before);
    expect(await rowsOf(key.stub, "SELECT * FROM requests")).toEqual([]);
  });
});
