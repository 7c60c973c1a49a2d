import { runInDurableObject } from "cloudflare:test";
import { expect, vi } from "vitest";
import { nextDeliveryTime } from "../../src/events/webhooks/delivery-rows.do.ts";
import { selectWebhookStates } from "../../src/events/webhooks/receiver-rows.do.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import type { Micros } from "../../src/shared/money.ts";
import { credit, GENERATION, holdOf, setClock, stubOf, valueOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { account, runWebhookAlarm, LONG, object } from "./receivers.ts";

/** Credits the test's organization. Returns its wallet. */
export async function fundedWallet(amount: number): Promise<Stub> {
  const stub = stubOf(account.orgId);
  await credit(stub, amount);
  return stub;
}

/** Charges a request and returns its ID. */
export async function charge(
  stub: Pick<WalletMethods, "hold" | "settle">,
  amount: number,
  more: object = {},
  hold: Parameters<typeof holdOf>[1] = {},
): Promise<string> {
  const request = holdOf(amount, hold);
  valueOf(await stub.hold(request));
  const generation = { ...GENERATION, ...more };
  valueOf(await stub.settle({ id: request.id, cost: amount as Micros, generation }));
  return request.id;
}

/** Sends everything that is due at this time. */
export async function deliver(atMs: number): Promise<void> {
  setClock(atMs);
  await runWebhookAlarm();
  await vi.waitFor(async () => {
    const due = await runInDurableObject(object(), (_, { storage }) =>
      selectWebhookStates(storage.sql)
        .filter(({ webhook, ending }) => webhook.disabledReason === null && ending === null)
        .map((one) => nextDeliveryTime(storage.sql, one) ?? Infinity),
    );
    expect(Math.min(...due)).toBeGreaterThan(atMs);
  }, LONG);
}
