import { afterAll, beforeAll, expect, it } from "vitest";
import type { Counts } from "../../scripts/workers/counts.ts";
import { Account } from "./support/account.ts";
import { startPersistentRegion } from "./support/two-regions.ts";
import type { PersistentRegion } from "./support/two-regions.ts";

const AT_ONCE = 64;
const ROUNDS = 5;
const ECHO = { model: "sandbox/echo", messages: [{ role: "user", content: "one of many" }] };

let kept: PersistentRegion;
beforeAll(async () => {
  kept = await startPersistentRegion({}, { entry: "scripts/workers/counting.ts" });
});
afterAll(() => kept.stop());

async function countsOfEu(): Promise<Counts> {
  return (await (await fetch(`${kept.region().url}__counts`)).json()) as Counts;
}

it("64 concurrent requests need at most 32 grouped wallet calls, and are charged exactly", async () => {
  const account = await Account.open(kept.region, { credits: 1_000_000, rpmLimit: 1000 });
  const [first] = [await account.chat(ECHO)];
  expect(first.status).toBe(200);
  const paid = 1_000_000 - (await account.balance());
  await countsOfEu();
  for (let round = 0; round < ROUNDS; round++) {
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const answer = await account.chat(ECHO);
        await answer.text();
        return answer.status;
      }),
    );
    expect(new Set(answers)).toEqual(new Set([200]));
  }
  const { objectCalls } = await countsOfEu();
  const requests = AT_ONCE * ROUNDS;
  expect(objectCalls / requests).toBeLessThanOrEqual(0.5);
  expect(await account.balance()).toBe(1_000_000 - (requests + 1) * paid);
});
