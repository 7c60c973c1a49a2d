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
import { effort } from "../effort.ts";

const WALLETS = effort(50, 1000);
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
    await state.storage.deleteAlarm(); // nobody waits for so many publishes
    return { version, held: before.heldMicro, answer, dailySpendMicro };
  });
}

it(`${WALLETS} wallets of the first version move on when they are next asked, and lose no hold`, async () => {
  const charge = { kind: "settled", charged: 25, shortfall: 0 };
  const move = async (): Promise<void> => {
    const orgId = crypto.randomUUID();
    const stub = stubOf(orgId);
    const id = await makeOld(stub, orgId);
    const expected = { version: 12, held: 30, answer: charge, dailySpendMicro: 45 };
    expect(await askedNow(stub, id)).toEqual(expected);
  };
  for (let done = 0; done < WALLETS; done += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, move));
  }
});

it("a second start finds nothing to move: the tables stay as the first one left them", async () => {
  const orgId = crypto.randomUUID();
  const stub = stubOf(orgId);
  const id = await makeOld(stub, orgId);
  const first = await askedNow(stub, id);
  await evictDurableObject(stub);
  expect(await askedNow(stub, id)).toEqual({ ...first, held: 0 });
  expect(await differences(stub)).toEqual([]);
});

it("rows of the version before answer as they did: generations, usage, ledger, and no difference", async () => {
  const orgId = crypto.randomUUID();
  const stub = stubOf(orgId);
  const generation = { ...GENERATION, streamed: true, firstByteMs: null, finishReason: null };
  const paid = holdOf(30, { externalId: "u", keyId: "key_paid" });
  const [open, plain] = [holdOf(20, { externalId: "u" }), holdOf(1)];
  await runInDurableObject(stub, async (wallet: Wallet) => {
    await wallet.create(orgId);
    valueOf(await wallet.credit({ amountMicro: micros(100), reference: "first" }));
    for (const request of [paid, open, plain]) {
      // oxlint-disable-next-line no-await-in-loop -- in order
      valueOf(await wallet.hold(request));
    }
    valueOf(await wallet.settle({ id: paid.id, cost: micros(30), generation }));
    valueOf(await settle(wallet, plain.id, 1));
  });
  const answers = async (): Promise<unknown> => [
    await stub.generation(paid.id),
    await stub.generation(plain.id),
    await stub.ledger(0, 10),
    await stub.listEndUsers(10, 0),
    await stub.balance(),
    ...(await Promise.all(
      (["model", "key", "user"] as const).map((by) => stub.usage("2020-01-01", "2099-01-01", by)),
    )),
  ];
  const before = await answers();
  expect(valueOf(await stub.generation(paid.id))).toEqual({
    ...generation,
    id: paid.id,
    keyId: "key_paid",
    externalId: "u",
    createdAt: expect.any(Number) as number,
    costMicro: 30,
    heldMicro: 30,
    absorbedMicro: 0,
  });
  await runInDurableObject(stub, (_wallet: Wallet, state) => backToVersion(state.storage.sql, 5));
  await evictDurableObject(stub);
  expect(await answers()).toEqual(before);
  expect(valueOf(await settle(stub, open.id, 20))).toMatchObject({ charged: 20 });
  expect(valueOf(await stub.readEndUser("u")).dailySpendMicro).toBe(50);
  expect(await differences(stub)).toEqual([]);
});
