import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FAULTS, EXPECTED_WORK } from "../fixtures/fault-matrix.ts";
import { abort, differencesWithDatabase, newFaultyWallet } from "./fault-fixture.ts";
import type { FaultMatrixRow } from "./fault-fixture.ts";
import { pay, setClock, stubOf, valueOf } from "./wallet-fixture.ts";

const HOUR = 3_600_000;

async function publishesAt(offset: number): Promise<readonly unknown[]> {
  const noon = new Date().setUTCHours(12, 0, 0, 0); // an hour later is still the same day
  setClock(noon);
  const { stub, database } = await newFaultyWallet();
  setClock(noon + offset);
  await pay(stub, 5, "u");
  valueOf(await stub.poke());
  const { balances } = await database.rows();
  expect(balances).toMatchObject([{ credits_micro: 985 }]);
  setClock(noon);
  await pay(stub, 5, "u");
  valueOf(await stub.poke());
  return differencesWithDatabase({ stub, database }, 980);
}

const CELLS: FaultMatrixRow = {
  "home's Durable Object evicted": async () => {
    const { stub, database } = await newFaultyWallet();
    database.fault = "delay";
    valueOf(await stub.poke());
    await evictDurableObject(stub);
    await pay(stub, 5, "u");
    valueOf(await stub.poke());
    expect(database.late).toHaveLength(1);
    await database.deliver(0);
    return differencesWithDatabase({ stub, database }, 985);
  },
  "home's Durable Object aborted": async () => {
    const { stub, orgId, database } = await newFaultyWallet();
    database.fault = "hang";
    const lost = stub.poke().catch(() => null);
    await abort(stub);
    await lost;
    const next = stubOf(orgId);
    valueOf(await next.poke());
    return differencesWithDatabase({ stub: next, database }, 990);
  },
  "D1 down": async () => {
    const { stub, database } = await newFaultyWallet();
    database.fault = "throw";
    for (let i = 0; i < 3; i++) {
      await pay(stub, 5, "u");
      valueOf(await stub.poke());
    }
    expect((await database.rows())["balances"]).not.toMatchObject([{ credits_micro: 975 }]);
    database.fault = "none";
    valueOf(await stub.poke());
    return differencesWithDatabase({ stub, database }, 975);
  },
  "home region unreachable": async () => {
    const { stub, database } = await newFaultyWallet();
    const called = vi.spyOn(globalThis, "fetch");
    valueOf(await stub.poke());
    expect(called).not.toHaveBeenCalled();
    return differencesWithDatabase({ stub, database }, 990);
  },
  "messages duplicated and reordered": async () => {
    const { stub, database } = await newFaultyWallet();
    database.fault = "duplicate";
    valueOf(await stub.poke());
    await pay(stub, 5, "u");
    valueOf(await stub.poke());
    expect(database.late.length).toBeGreaterThanOrEqual(2);
    while (database.late.length > 0) await database.deliver(database.late.length - 1);
    return differencesWithDatabase({ stub, database }, 985);
  },
  "clock 1 h ahead": () => publishesAt(HOUR),
  "clock 1 h behind": () => publishesAt(0 - HOUR),
  "executing Worker stops": async () => {
    const { stub, database } = await newFaultyWallet();
    database.fault = "throw-after";
    valueOf(await stub.poke());
    expect((await database.rows())["balances"]).toMatchObject([{ credits_micro: 990 }]);
    await evictDurableObject(stub);
    valueOf(await stub.poke());
    return differencesWithDatabase({ stub, database }, 990);
  },
};

afterEach(() => setClock(null));

describe("a wallet's flush to D1 during a fault", () => {
  it.each(FAULTS.map((fault) => [fault, EXPECTED_WORK["flush to D1"][fault]] as const))(
    "the fault matrix's cell flush to D1 x %s ends with the documented result: %s",
    async (fault) => {
      expect(await CELLS[fault]()).toEqual([]);
    },
  );
});
