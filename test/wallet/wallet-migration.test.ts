import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { micros } from "../../src/lib/money.ts";
import type { Wallet } from "../../src/wallet/wallet.do.ts";
import {
  backToVersion,
  differences,
  GENERATION,
  holdOf,
  settle,
  stubOf,
  valueOf,
} from "./wallet-desk.ts";
import type { Stub } from "./wallet-desk.ts";

const WALLETS = 1000;
const AT_ONCE = 50;

/** Gives a wallet an open hold and the tables of the first version, as a deploy finds it. */
async function makeOld(stub: Stub, orgId: string): Promise<string> {
  const [open, paid] = [holdOf(30, { externalId: "u" }), holdOf(20, { externalId: "u" })];
  await runInDurableObject(stub, async (wallet: Wallet, state) => {
    await wallet.create(orgId);
    valueOf(await wallet.credit({ amountMicro: micros(100), reference: "first" }));
    valueOf(await wallet.hold(open));
    valueOf(await wallet.hold(paid));
    valueOf(await settle(wallet, paid.id, 20));
    backToVersion(state.storage.sql, 1);
  });
  await evictDurableObject(stub);
  return open.id;
}

/** What a wallet is once it was asked: its version, and what its open hold came to. */
function askedNow(stub: Stub, id: string) {
  return runInDurableObject(stub, async (wallet: Wallet, state) => {
    const before = valueOf(await wallet.balance());
    const generation = GENERATION;
    const answer = valueOf(await wallet.settle({ id, cost: micros(25), generation }));
    const { dailySpendMicro } = valueOf(await wallet.readEndUser("u"));
    const { version } = state.storage.sql
      .exec<{ version: number }>("SELECT version FROM schema_version")
      .one();
    await state.storage.deleteAlarm(); // nobody waits for a thousand publishes
    return { version, held: before.heldMicro, answer, dailySpendMicro };
  });
}

it("1,000 wallets of the first version move on when they are next asked, and lose no hold (153)", async () => {
  const charge = { kind: "settled", charged: 25, shortfall: 0 };
  const move = async (): Promise<void> => {
    const orgId = crypto.randomUUID();
    const stub = stubOf(orgId);
    const id = await makeOld(stub, orgId);
    const expected = { version: 5, held: 30, answer: charge, dailySpendMicro: 45 };
    expect(await askedNow(stub, id)).toEqual(expected);
  };
  for (let done = 0; done < WALLETS; done += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, move));
  }
}, 120_000);

it("a second start finds nothing to move: the tables stay as the first one left them (153)", async () => {
  const orgId = crypto.randomUUID();
  const stub = stubOf(orgId);
  const id = await makeOld(stub, orgId);
  const first = await askedNow(stub, id);
  await evictDurableObject(stub);
  expect(await askedNow(stub, id)).toEqual({ ...first, held: 0 });
  expect(await differences(stub)).toEqual([]);
});
