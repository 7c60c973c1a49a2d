import { evictDurableObject } from "cloudflare:test";
import { afterEach, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import { credit, differences, newWallet, pay, setClock, valueOf } from "./wallet-desk.ts";

afterEach(() => setClock(null));

const START = Date.UTC(2037, 8, 30, 12);
const DAY = 86_400_000;

it.each([false, true])(
  "a restored database matches the ledger after the wallet's next publish (evicted: %s)",
  async (evicted) => {
    setClock(START);
    const { stub, orgId } = await newWallet(1000);
    const database = new FaultyDatabase(orgId);
    valueOf(await stub.putEndUser("u", { dailyQuotaMicro: micros(100) }));
    await pay(stub, 80, "u");
    valueOf(await stub.poke());
    await database.remember();
    for (let day = 1; day <= 3; day++) {
      setClock(START + day * DAY);
      await pay(stub, 80 + day, "u");
      valueOf(await stub.poke());
    }
    await database.restore();
    expect(await differences(stub)).toMatchObject([
      { what: "book balance", expected: 1000 - 326, found: 920 },
    ]);
    if (evicted) await evictDurableObject(stub);
    await credit(stub, 1);
    valueOf(await stub.poke());
    const book = await database.rows();
    const { rows } = valueOf(await stub.ledger(0, 100));
    const sum = rows.reduce((total, row) => total + row.amountMicro, 0);
    expect(book["balances"]).toMatchObject([{ credits_micro: sum }]);
    const { data } = valueOf(await stub.usage("2037-09-30", "2037-10-03", "day"));
    expect(data.map(({ costMicro }) => costMicro)).toEqual([80, 81, 82, 83]);
    expect(book["daily_usage"]).toMatchObject(
      data.map(({ group, costMicro }) => ({ day: group, cost_micro: costMicro })),
    );
    const { alerts } = valueOf(await stub.alerts(10, 0));
    expect(alerts).toHaveLength(4);
    expect(book["alerts"]?.map((row) => row["id"])).toEqual(alerts.map(({ id }) => id).toSorted());
    expect(book["end_users"]).toMatchObject([{ day: "2037-10-03", daily_spend_micro: 83 }]);
    expect(await differences(stub)).toEqual([]);
  },
);
