import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { FAULTS, EXPECTED_WORK } from "../fixtures/fault-matrix.ts";
import { settleOf } from "../regions/outbox-fixture.ts";
import { armed, depthIs, EMPTY, outboxOf, withAlarms } from "../regions/outbox-steps.ts";
import { Peer } from "../regions/peer-fixture.ts";
import { abort, differencesWithDatabase, newFaultyWallet } from "./fault-fixture.ts";
import type { FaultMatrixRow } from "./fault-fixture.ts";
import { differences, holdOf, setClock, stubOf, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Longer than a hold in the home region lasts. */
const AFTER_HOLDS_END = 21 * MINUTE;

/** Creates a wallet with an open hold of 40. */
async function holding() {
  const wallet = await newFaultyWallet();
  valueOf(await wallet.stub.hold(holdOf(40)));
  return wallet;
}

const alarmOf = (stub: Stub): Promise<number | null> =>
  runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.getAlarm());

/** Returns the number of expired holds in the ledger. */
async function expirations(stub: Stub): Promise<number> {
  const page = valueOf(await stub.ledger(0, 100));
  return page.rows.filter(({ kind }) => kind === "expire").length;
}

const CELLS: FaultMatrixRow = {
  "home's Durable Object evicted": async () => {
    const { stub } = await holding();
    await runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.deleteAlarm());
    expect(await alarmOf(stub)).toBeNull();
    await evictDurableObject(stub);
    valueOf(await stub.balance());
    expect(await alarmOf(stub)).not.toBeNull();
    return differences(stub);
  },
  "home's Durable Object aborted": async () => {
    const { stub, orgId } = await holding();
    await abort(stub);
    const next = stubOf(orgId);
    valueOf(await next.balance());
    expect(await alarmOf(next)).not.toBeNull();
    setClock(Date.now() + AFTER_HOLDS_END);
    await runDurableObjectAlarm(next);
    expect([await expirations(next), valueOf(await next.balance()).openHolds]).toEqual([1, 0]);
    return differences(next);
  },
  "D1 down": async () => {
    const { stub, database } = await holding();
    database.fault = "throw";
    for (let round = 1; round <= 10; round++) {
      setClock(Date.now() + round * 2 * MINUTE);
      await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
      expect(await alarmOf(stub)).not.toBeNull();
    }
    database.fault = "none";
    setClock(Date.now() + 23 * MINUTE);
    await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
    expect(await expirations(stub)).toBe(1);
    return differencesWithDatabase({ stub, database }, 990);
  },
  "home region unreachable": async () => {
    const [peer, outbox] = [new Peer(), outboxOf("us")];
    peer.fault = () => "request-lost";
    const item = settleOf(crypto.randomUUID(), 1);
    await outbox.enqueue([item]);
    let offset = 0;
    while (peer.requests.length < 4) {
      await withAlarms(outbox, (offset += MINUTE), () => undefined);
      await expect.poll(() => armed(outbox)).not.toBeNull(); // there is no alarm while it runs
    }
    await depthIs(outbox, { ...EMPTY, waiting: 1 });
    peer.fault = () => "none";
    await withAlarms(outbox, offset + MINUTE, () => depthIs(outbox, EMPTY));
    expect(peer.effects.get(item.holdId)).toBe("settle");
    return [...peer.effects.keys()].filter((id) => id !== item.holdId);
  },
  "messages duplicated and reordered": async () => {
    const { stub } = await holding();
    setClock(Date.now() + AFTER_HOLDS_END);
    await runInDurableObject(stub, (wallet: Wallet) =>
      Promise.all([wallet.alarm(), wallet.alarm()]),
    );
    await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
    expect(await expirations(stub)).toBe(1);
    return differences(stub);
  },
  "clock 1 h ahead": async () => {
    const { stub } = await holding();
    setClock(Date.now() + HOUR);
    await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
    expect([await expirations(stub), await differences(stub)]).toEqual([1, []]);
    setClock(null);
    await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
    expect(await expirations(stub)).toBe(1);
    return differences(stub);
  },
  "clock 1 h behind": async () => {
    const { stub } = await holding();
    const back = Date.now() - HOUR;
    for (const [later, open] of [
      [0, 1],
      [19 * MINUTE, 1],
      [AFTER_HOLDS_END, 0],
    ] as const) {
      setClock(back + later);
      await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
      expect(valueOf(await stub.balance()).openHolds).toBe(open);
    }
    expect(await expirations(stub)).toBe(1);
    return differences(stub);
  },
  "executing Worker stops": async () => {
    const { stub, orgId, database } = await holding();
    database.fault = "hang";
    setClock(Date.now() + AFTER_HOLDS_END);
    const ran = runInDurableObject(stub, (wallet: Wallet) => wallet.alarm()).catch(() => null);
    await abort(stub);
    await ran;
    const next = stubOf(orgId);
    valueOf(await next.balance());
    // An overdue alarm can be running, in which case none is set.
    const ranAgain = (await alarmOf(next)) !== null || (await expirations(next)) === 1;
    expect(ranAgain).toBe(true);
    await runInDurableObject(next, (wallet: Wallet) => wallet.alarm());
    valueOf(await next.poke());
    expect(await expirations(next)).toBe(1);
    return differencesWithDatabase({ stub: next, database }, 990);
  },
};

afterEach(() => setClock(null));

describe("a wallet's alarm during a fault", () => {
  it.each(FAULTS.map((fault) => [fault, EXPECTED_WORK["alarm"][fault]] as const))(
    "the fault matrix's cell alarm x %s ends with the documented result: %s",
    async (fault) => {
      expect(await CELLS[fault]()).toEqual([]);
    },
  );
});
