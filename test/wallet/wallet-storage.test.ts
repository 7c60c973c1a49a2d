import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { micros } from "../../src/lib/money.ts";
import type { Generation } from "../../src/lib/generation.ts";
import type { Wallet } from "../../src/wallet/wallet.do.ts";
import { measured } from "../measured.ts";
import { GENERATION, holdOf, newWallet, valueOf } from "./wallet-desk.ts";
import type { Stub } from "./wallet-desk.ts";

/** What a request of a usual length leaves behind. */
const USUAL: Generation = {
  ...GENERATION,
  model: "anthropic/claude-sonnet-5",
  provider: "anthropic",
  keyId: "key_0123456789abcdefghijklmn",
  externalId: "customer-48151623",
  streamed: true,
  usage: { input: 1500, cacheRead: 4096, cacheWrite: 0, output: 640, reasoning: 128 },
  price: { input: 3_000_000, cached: 300_000, cacheWrite: 3_750_000, output: 15_000_000 },
  firstByteMs: 612,
  durationMs: 9480,
};

/** Pays one usual request after the other; the bytes of storage that each came to. */
async function bytesPerRequest(stub: Stub, count: number): Promise<number> {
  return runInDurableObject(stub, async (wallet: Wallet, state) => {
    const { sql } = state.storage;
    const before = sql.databaseSize;
    const { externalId, keyId } = USUAL;
    for (let i = 0; i < count; i++) {
      const request = {
        ...holdOf(9000, { externalId, keyId }),
        most: micros(24_000),
      };
      // oxlint-disable-next-line no-await-in-loop -- in order
      valueOf(await wallet.hold(request));
      const cost = micros(15_328 + i);
      // oxlint-disable-next-line no-await-in-loop
      valueOf(await wallet.settle({ id: request.id, cost, generation: USUAL }));
    }
    return (sql.databaseSize - before) / count;
  });
}

it("a paid request takes at most 350 bytes of its wallet", async () => {
  const { stub } = await newWallet(900_000_000);
  const bytes = await bytesPerRequest(stub, 3000);
  measured({ bytesPerRequest: Math.round(bytes) });
  expect(bytes).toBeLessThanOrEqual(350);
});
