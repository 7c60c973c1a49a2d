import { runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Generation } from "../../src/shared/generation.ts";
import { micros } from "../../src/shared/money.ts";
import type { Price, Usage } from "../../src/shared/usage.ts";
import {
  parseGeneration,
  generationDetailJson,
  sharedChargeFieldsJson,
} from "../../src/money/wallet/tables/generation-json.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { effortFor } from "../effort.ts";
import { GENERATION, holdOf, newWallet, pay, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const HOUR_MS = 3_600_000;
const count = fc.nat(1_000_000);
const perMillion = fc.nat(1_000_000_000);
/** Plain objects, because calls to objects clone them. */
const PLAIN = { noNullPrototype: true };
const prices: fc.Arbitrary<Price> = fc.record(
  { input: perMillion, cached: perMillion, cacheWrite: perMillion, output: perMillion },
  PLAIN,
);
/** An hour's writes are included in the writes. */
const usages: fc.Arbitrary<Usage> = fc
  .record({ input: count, cacheRead: count, hour: count, rest: count, output: count }, PLAIN)
  .map(({ input, cacheRead, hour, rest, output }) => {
    const usage = { input, cacheRead, cacheWrite: hour + rest, output, reasoning: 0 };
    return hour === 0 ? usage : Object.assign(usage, { cacheWriteHour: hour });
  });

/**
 * Returns the provider's bill as an exact integer. A token stored for an hour costs twice the input
 * price.
 */
function billed(price: Price, usage: Usage): number {
  const { input, cacheRead, cacheWrite, cacheWriteHour: hour = 0, output } = usage;
  const sum =
    BigInt(input + 2 * hour) * BigInt(price.input) +
    BigInt(cacheRead) * BigInt(price.cached) +
    BigInt(cacheWrite - hour) * BigInt(price.cacheWrite) +
    BigInt(output) * BigInt(price.output);
  return Number((sum + 999_999n) / 1_000_000n);
}

async function paid(stub: Stub, generation: Generation): Promise<string> {
  const request = holdOf(10);
  valueOf(await stub.hold(request));
  valueOf(await stub.settle({ id: request.id, cost: micros(10), generation }));
  return request.id;
}

const costsOf = async (stub: Stub, price: Price | null = null) =>
  valueOf(
    await stub.costs({
      fromMs: Date.now() - HOUR_MS,
      beforeMs: Date.now() + HOUR_MS,
      by: "provider",
      model: null,
      price,
    }),
  );

it("a wallet adds up the provider's cost of cache reads, writes and one-hour writes to the micro-credit", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(prices, usages), { minLength: 1, maxLength: 6 }),
      async (requests) => {
        const { stub } = await newWallet(1_000_000);
        const byProvider = new Map<string, number>();
        for (const [index, [bought, usage]] of requests.entries()) {
          const provider = `host-${index % 2}`;
          const id = await paid(stub, { ...GENERATION, provider, usage, bought });
          expect(valueOf(await stub.request(id)).generation).toMatchObject({ usage, bought });
          byProvider.set(provider, (byProvider.get(provider) ?? 0) + billed(bought, usage));
        }
        const { data } = await costsOf(stub);
        const counted = [...byProvider].map(([provider]) => {
          const days = data.filter(({ group }) => group === provider); // two around midnight
          return [provider, days.reduce((sum, { boughtMicro }) => sum + boughtMicro, 0)] as const;
        });
        expect(counted).toEqual([...byProvider]);
        expect(data.map(({ unknown }) => unknown)).toEqual(data.map(() => 0));
      },
    ),
    { numRuns: effortFor(15, 200) },
  );
});

/** Rows of releases that didn't record the start of a price, lists or costs. */
const OLD = {
  sold: '{"model":"acme/one","provider":"acme","region":"eu","price":{"input":3000000,"cached":300000,"cacheWrite":3750000,"output":15000000}}',
  detail: '[1,4096,100,128,612,9480,0,"stop",40]',
  charged: 0,
  prompt_tokens: 5696,
  completion_tokens: 640,
};
const OLD_GENERATION: Omit<Generation, "keyId"> = {
  model: "acme/one",
  provider: "acme",
  region: "eu",
  price: { input: 3_000_000, cached: 300_000, cacheWrite: 3_750_000, output: 15_000_000 },
  usage: {
    input: 1500,
    cacheRead: 4096,
    cacheWrite: 100,
    cacheWriteHour: 40,
    output: 640,
    reasoning: 128,
  },
  streamed: true,
  firstByteMs: 612,
  durationMs: 9480,
  estimated: false,
  finishReason: "stop",
};

it("a wallet reads and rewrites a receipt of an older release without changes", () => {
  const read = parseGeneration(OLD);
  expect(read).toStrictEqual(OLD_GENERATION);
  const again = { ...read, keyId: "key_test" };
  expect([sharedChargeFieldsJson(again), generationDetailJson(again)]).toEqual([
    OLD.sold,
    OLD.detail,
  ]);
});

it("a wallet returns an older release's row as a receipt whose provider cost is unknown", async () => {
  const { stub } = await newWallet(1_000_000);
  await pay(stub, 10);
  const id = await paid(stub, { ...GENERATION, bought: GENERATION.price });
  await runInDurableObject(stub, (_: Wallet, { storage: { sql } }) => {
    sql.exec(
      "UPDATE names SET text = ? WHERE number = (SELECT sold FROM requests WHERE id = ?)",
      OLD.sold,
      id,
    );
    sql.exec(
      "UPDATE requests SET detail = ?, prompt_tokens = ?, completion_tokens = ? WHERE id = ?",
      OLD.detail,
      OLD.prompt_tokens,
      OLD.completion_tokens,
      id,
    );
  });
  const { generation } = valueOf(await stub.request(id));
  expect(generation).toMatchObject(OLD_GENERATION);
  expect([generation?.origin, generation?.bought]).toEqual([undefined, undefined]);
  const { data } = await costsOf(stub);
  expect(data.find(({ group }) => group === "acme")).toMatchObject({
    requests: 1,
    chargedMicro: 10,
    boughtMicro: 0,
    unknown: 1,
  });
  // Its tokens are known, so another price can be applied.
  const { lessMicro } = await costsOf(stub, { input: 1, cached: 1, cacheWrite: 1, output: 1 });
  expect(lessMicro).toBe(9 + 9);
});
