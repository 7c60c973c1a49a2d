import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import type { Account } from "./support/account.ts";
import { answerOf } from "./support/account.ts";
import {
  delivered,
  expectAtRest,
  expectGenerations,
  expectKnownCharges,
  openRemoteAccount,
} from "./support/peer-money.ts";
import { callAt, chatOf, send, sendAll, withUsage } from "./support/peer-traffic.ts";
import type { ClientOutcome } from "./support/peer-traffic.ts";
import { killRegion } from "./support/kill-region.ts";
import { openRaw } from "./support/raw-request.ts";
import { recordMeasured } from "../measured.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const REQUESTS = 200;
const ROUNDS = 20;
const CALLERS = 4;
/** Maximum paid responses of a round before a region is killed. */
const PAID_BEFORE_MAX = 4;
/** Open requests when a round's region is killed. */
const HANGING = 2;
/** Life of a hold from another region. A clock ahead by more than that expires it. */
const PEER_HOLD_TTL_S = "1000";
const AFTER_HOLDS_END_MS = String(1001 * 1000);

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions({
    bindings: { DRAIN_S: "1", PEER_HOLD_TTL_S, REQUEST_DEADLINE_S: "900" },
  });
});
afterAll(() => regions.stop());

/** Opens a stream in the US that stops after its first words. */
async function hang(account: Account): Promise<string> {
  const connection = await openRaw({
    url: `${regions.us.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${account.key}` },
    body: JSON.stringify(withUsage(chatOf("stall", { input: "hang", user: "hung" }))),
  });
  expect(await connection.readUntil((received) => received.includes('"content":"'))).toBe(true);
  return answerOf(connection).headers.get("x-request-id") ?? "";
}

describe("a region killed at random moments and restarted", () => {
  it(`charges completed requests and releases all other holds: ${REQUESTS} requests, ${ROUNDS} kills`, async () => {
    const account = await openRemoteAccount(regions);
    const outcomes: ClientOutcome[] = [];
    const hanging: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const victim = round % 2 === 0 ? "us" : "eu";
      const perRound = REQUESTS / ROUNDS;
      if (victim === "us") {
        for (let i = 0; i < HANGING; i++) hanging.push(await hang(account));
      }
      const after = Math.floor(Math.random() * PAID_BEFORE_MAX);
      const pid = workerdPid(regions[victim].port);
      const reached = Promise.withResolvers<void>();
      let paid = 0;
      const load = sendAll(perRound, CALLERS, async (n) => {
        const one = await send(round + n, account, regions.us);
        if (one.fate === "paid" && paid++ === after) reached.resolve();
        // A disconnected client got no response, because its region might have been killed before
        // it settled.
        return one.fate === "charged" ? { ...one, fate: "unknown" as const } : one;
      });
      await Promise.race([reached.promise, load]);
      await killRegion(regions[victim], pid);
      outcomes.push(...(await load));
    }
    await delivered(regions.us);
    const paid = outcomes.filter(({ fate }) => fate === "paid");
    expect(paid.length).toBeGreaterThanOrEqual(ROUNDS);
    expect((await account.fullBalance()).open_holds).toBeGreaterThanOrEqual(hanging.length);

    const later = { CLOCK_OFFSET_MS: AFTER_HOLDS_END_MS };
    await Promise.all([regions.restart("eu", later), regions.restart("us", later)]);
    await account.resolved();
    const charges = await expectAtRest(account);
    const lost = paid.filter(({ id }) => !charges.has(id)).length;
    recordMeasured({ kills: ROUNDS, answered: paid.length, lost, stranded: hanging.length });
    expectKnownCharges(charges, outcomes);
    for (const id of hanging) expect(charges.has(id)).toBe(false);
    const expired = (await account.ledger()).filter(({ kind }) => kind === "expire");
    expect(expired.map((row) => row.generation_id)).toEqual(expect.arrayContaining(hanging));
    expect(expired.every((row) => row.amount_micro === 0)).toBe(true);
    await expectGenerations(account, regions.us, charges);
    const next = await callAt(regions.us, account, "/chat/completions", {
      ...chatOf("echo", { input: "still", user: "hung" }),
    });
    expect(next.status).toBe(200);
  });
});
