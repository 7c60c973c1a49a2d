import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { GroupedWalletCall } from "../../src/shared/contracts/wallet.ts";
import { differences, GENERATION, holdOf, newWallet, valueOf } from "./wallet-fixture.ts";

const USERS = 10_100;
const AT_ONCE = 16;

it("a wallet counts the spend of 10,100 end users exactly while it stores a checkpoint", async () => {
  const { stub } = await newWallet(USERS);
  const checkpoints = () =>
    runInDurableObject(stub, (_, { storage }) =>
      storage.sql.exec("SELECT max(seq) AS seq FROM checkpoints").one(),
    );
  const before = await checkpoints();
  for (let from = 0; from < USERS; from += AT_ONCE) {
    const parts = Array.from({ length: AT_ONCE }, (_, at): GroupedWalletCall[] => {
      const hold = holdOf(1, { externalId: `user ${from + at}` });
      const settlement = { id: hold.id, cost: micros(1), generation: GENERATION };
      return [
        { call: "hold", args: [hold] },
        { call: "settle", args: [settlement] },
      ];
    });
    // oxlint-disable-next-line no-await-in-loop -- one group after the other
    await stub.together(parts.flat());
  }
  expect(await checkpoints()).not.toEqual(before);
  await evictDurableObject(stub);
  expect(valueOf(await stub.readEndUser("user 7"))).toMatchObject({ monthlySpendMicro: 1 });
  expect(await differences(stub)).toEqual([]);
}, 300_000);
