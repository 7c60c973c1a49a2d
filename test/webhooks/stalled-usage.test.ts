import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { HOUR_MS } from "../../src/shared/clock.ts";
import { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { openAccount } from "../contract/client.ts";
import { countWrites, credit, setClock, stubOf } from "../wallet/wallet-fixture.ts";
import { account, createWebhook, object, receivers, callsTo, useReceivers } from "./receivers.ts";
import { ReceivedLedger } from "./received-ledger.ts";
import type { UsageMessage } from "./received-ledger.ts";
import { charge, deliver } from "./usage-stream-fixture.ts";

useReceivers();

const types = ["usage.settled"];
const [GOOD, STALLED] = ["good.turnpike.dev", "stalled.turnpike.dev"];
const HOURS = 8;

/** The cost of hours with a charge each, for everyone except the stalled receiver. */
type Costs = {
  /** Rows that the wallet writes for the charges. */
  readonly rows: number;
  /** Calls to the good receiver, and the hours after which each arrives. */
  readonly arrivals: readonly number[];
  /** Pages of the ledger that the wallet reads for all webhooks. */
  readonly reads: number;
  /** Rows that the object of the webhooks stores at the end. */
  readonly deliveries: number;
};

async function costsOf(hosts: readonly string[]): Promise<Costs> {
  Object.assign(account, await openAccount({ credits: 0 }));
  const stub = stubOf(account.orgId);
  const start = Date.now();
  setClock(start);
  for (const host of hosts) await createWebhook(host, { types });
  await credit(stub, 10_000);
  await deliver(start + HOUR_MS);
  const before = callsTo(GOOD).length;
  const reads = vi.spyOn(Wallet.prototype, "usageStream");
  reads.mockClear(); // Vitest keeps the spy of an inherited method, with its calls
  const arrivals: number[] = [];
  let rows = 0;
  for (let hour = 2; hour < HOURS + 2; hour++) {
    await runInDurableObject(stub, async (wallet: Wallet, { storage }) => {
      rows += await countWrites(storage, async () => void (await charge(wallet, 1)));
    });
    await deliver(start + hour * HOUR_MS);
    arrivals.push(callsTo(GOOD).length - before);
  }
  const deliveries = await runInDurableObject(object(), (_, { storage }) =>
    Number(storage.sql.exec("SELECT count(*) AS n FROM deliveries").one()["n"]),
  );
  const counted = reads.mock.calls.length;
  reads.mockRestore();
  return { rows, arrivals, reads: counted, deliveries };
}

describe("a receiver of usage.settled that stalls for hours", () => {
  it.each([
    ["answers 503", () => new Response("", { status: 503 })],
    ["never responds", () => new Promise<Response>(() => undefined)],
  ])(
    "causes no delay for other webhooks if the receiver %s, and each attempt reads only one page",
    async (_, stall) => {
      (env as { WEBHOOK_TIMEOUT_MS?: string }).WEBHOOK_TIMEOUT_MS = "20";
      let isStalled = true;
      receivers[GOOD] = () => new Response("ok");
      receivers[STALLED] = () => (isStalled ? stall() : new Response("ok"));
      const alone = await costsOf([GOOD]);
      const together = await costsOf([GOOD, STALLED]);
      expect(together.rows).toBe(alone.rows);
      expect(together.arrivals).toEqual(alone.arrivals);
      expect(together.arrivals).toEqual(Array.from({ length: HOURS }, (__, n) => n + 1));
      const attempts = callsTo(STALLED).length;
      expect(attempts).toBeLessThanOrEqual(HOURS + 2);
      expect(together.reads - alone.reads).toBeLessThanOrEqual(attempts);
      expect(together.deliveries - alone.deliveries).toBe(1);
      isStalled = false;
      await deliver(Date.now() + (HOURS + 4) * HOUR_MS);
      const received = new ReceivedLedger();
      received.add(JSON.parse(callsTo(STALLED).at(-1)?.body ?? "") as UsageMessage);
      expect(received.sum()).toBe(10_000 - HOURS);
      delete (env as { WEBHOOK_TIMEOUT_MS?: string }).WEBHOOK_TIMEOUT_MS;
    },
  );
});
