import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { GENERATION, holdOf, newWallet, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const HOUR_MS = 3_600_000;
/** A failed call, and a call that a disconnect ended, which never counts against its provider. */
const FAILED = [
  { route: "acme:one", why: "500", status: 500 },
  { route: "acme:one", why: "left", lost: { model: "acme/one", cost: 7 } },
];

/** Settles a request with a failover, and inserts earlier copies of it, one each ms. */
async function fill(stub: Stub, copies: number): Promise<number> {
  const request = holdOf(1);
  valueOf(await stub.hold(request));
  const generation = { ...GENERATION, failed: FAILED };
  valueOf(await stub.settle({ id: request.id, cost: micros(1), generation }));
  return runInDurableObject(stub, (_wallet: Wallet, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
      INSERT INTO requests (id, state, admitted_at, expires_at, least, most, key, named, seq, balance, sold, detail)
      SELECT substr(id, 1, 12) || printf('%016d', i), state, admitted_at - ?1 + i - 1, expires_at, least, most,
        key, named, 1000000 + i, balance, sold, detail FROM requests, n WHERE id = ?2`,
      copies,
      request.id,
    );
    const last = sql.exec<{ at: number }>("SELECT max(admitted_at) AS at FROM requests").one();
    return last.at;
  });
}

it("a wallet counts provider calls of the newest 50,000 requests, and returns the time of the first request", async () => {
  const { stub } = await newWallet(100);
  const fromMs = Date.now() - HOUR_MS;
  await fill(stub, 9);
  expect(valueOf(await stub.providerCalls(fromMs))).toEqual({
    data: [
      { provider: "sandbox", served: 10, failed: {} },
      { provider: "acme", served: 0, failed: { "500": 10 } },
    ],
    completeFrom: fromMs,
  });
  const large = (await newWallet(100)).stub;
  const lastMs = await fill(large, 50_009);
  expect(valueOf(await large.providerCalls(fromMs))).toEqual({
    data: [
      { provider: "sandbox", served: 50_000, failed: {} },
      { provider: "acme", served: 0, failed: { "500": 50_000 } },
    ],
    completeFrom: lastMs - 49_999,
  });
});
