import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { GENERATION } from "../fixtures/generation-record.ts";
import { micros } from "../../src/shared/money.ts";
import type { RevocationItem, OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import {
  allOutboxNames,
  peerOutboxNamesOfOrganization,
  revocationsOutboxName,
} from "../../src/regions/outbox-schedule.ts";
import { Account } from "./support/account.ts";
import { ADMIN_TOKEN, startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const CREDITS = 1_000_000;
const RELAXED = { timeout: 100_000, interval: 50 };

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
});
afterAll(() => regions.stop());
afterEach(() => regions.toEu.set("pass"));

type Depth = { readonly waiting: number; readonly dead: number; readonly parked: number };
/** The object's methods that this test calls, because the class needs the Worker's types. */
type Outbox = {
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  flush(limitMs: number): Promise<boolean>;
  depth(): Promise<Depth>;
};

async function outboxOfUs(name: string): Promise<Outbox> {
  const { miniflare } = regions.us;
  const outboxes = await miniflare.getDurableObjectNamespace("REGION_OUTBOX", "turnpike-us");
  return outboxes.getByName(name) as unknown as Outbox;
}

/** Returns an outbox of the US for an EU organization. */
function shardOf({ orgId }: Account): string {
  const [name] = peerOutboxNamesOfOrganization("eu", orgId);
  assert.ok(name !== undefined);
  return name;
}

/** Returns the outcome of a US request for which this organization's wallet has a hold. */
async function outcome(account: Account, cost: number | null): Promise<OutcomeItem> {
  const { miniflare } = regions.eu;
  const wallets = await miniflare.getDurableObjectNamespace("WALLET", "turnpike-eu");
  const wallet = wallets.getByName(account.orgId) as unknown as Pick<WalletMethods, "hold">;
  const holdId = mintId("req_", Date.now());
  const hold = {
    id: holdId,
    least: micros(1),
    sure: micros(1),
    most: micros(5000),
    hasCap: true,
    tokens: { prompt: 1, least: 2, most: 2 },
    model: null,
    externalId: null,
    idempotency: null,
  };
  const answer = await wallet.hold({ ...hold, keyId: "key_1", peer: true });
  assert.ok(answer.ok);
  const { orgId } = account;
  if (cost === null) return { holdId, orgId, kind: "void", cost: micros(0), generation: null };
  const generation = { ...GENERATION, region: "us" } as const;
  return { holdId, orgId, kind: "settle", cost: micros(cost), generation };
}

const revocation = (revokedAt: number): RevocationItem => ({
  keyHash: randomBytes(32).toString("hex"),
  revokedAt,
});

/** Returns when the EU's key object recorded the revocation. */
async function deadSince({ keyHash }: RevocationItem): Promise<number> {
  const { miniflare } = regions.eu;
  const registers = await miniflare.getDurableObjectNamespace("KEY_REGISTER", "turnpike-eu");
  const register = registers.getByName(keyHash) as unknown as {
    revoke(revokedAt: number): Promise<number>;
  };
  return register.revoke(Number.MAX_SAFE_INTEGER);
}

/** Returns the number of waiting, failed and dead-lettered messages in all US outboxes. */
async function depthOfUs(): Promise<Depth> {
  const outboxes = await Promise.all(allOutboxNames(["eu"]).map(outboxOfUs));
  const depths = await Promise.all(outboxes.map((outbox) => outbox.depth()));
  const sum = (one: "waiting" | "dead" | "parked"): number =>
    depths.reduce((total, depth) => total + depth[one], 0);
  return { waiting: sum("waiting"), dead: sum("dead"), parked: sum("parked") };
}
const EMPTY = { waiting: 0, dead: 0, parked: 0 };

it("an outbox delivers each message once, even if 30 % are lost, 20 % are duplicated and some are reordered", async () => {
  const { toEu } = regions;
  const accounts = await Promise.all(
    Array.from({ length: 5 }, () => Account.open(() => regions.eu, { credits: CREDITS })),
  );
  const revocations = Array.from({ length: 20 }, (_, i) => revocation(1000 + i));
  await toEu.set({
    seed: 20_261_121,
    odds: { "reset-before": 0.1, "reset-after": 0.15, garbage: 0.05, duplicate: 0.2, reorder: 0.2 },
  });
  const gone = await outboxOfUs(revocationsOutboxName("eu"));
  for (let round = 0; round < 20; round++) {
    const notice = revocations[round];
    assert.ok(notice !== undefined);
    await Promise.all([
      gone.enqueueRevocations([notice]),
      ...accounts.map(async (account, i) => {
        const item = await outcome(account, round % 4 === 3 ? null : 100 + round + i);
        const outbox = await outboxOfUs(shardOf(account));
        await outbox.enqueue([item, item]);
      }),
    ]);
  }
  await expect.poll(() => toEu.counts.drawn["reset-after"], RELAXED).toBeGreaterThan(0);
  await toEu.set("pass");
  await expect.poll(depthOfUs, RELAXED).toEqual(EMPTY);
  const { drawn } = toEu.counts;
  for (const fault of ["reset-before", "reset-after", "duplicate", "reorder"] as const) {
    expect([fault, drawn[fault]]).not.toEqual([fault, 0]);
  }
  for (const [i, account] of accounts.entries()) {
    const costs = Array.from({ length: 20 }, (_, round) => (round % 4 === 3 ? 0 : 100 + round + i));
    const spent = costs.reduce((total, cost) => total + cost, 0);
    expect(await account.fullBalance()).toMatchObject({
      credits_micro: CREDITS - spent,
      held_micro: 0,
      open_holds: 0,
    });
    const paid = (await account.ledger()).filter(({ kind }) => kind === "usage");
    expect(paid.map(({ amount_micro }) => -amount_micro).toSorted((a, b) => a - b)).toEqual(
      costs.filter((cost) => cost > 0).toSorted((a, b) => a - b),
    );
  }
  expect(await Promise.all(revocations.map(deadSince))).toEqual(
    revocations.map(({ revokedAt }) => revokedAt),
  );
});

it("an outbox keeps all messages while the connection is down, and delivers them with the next message", async () => {
  const { toEu } = regions;
  const account = await Account.open(() => regions.eu, { credits: CREDITS });
  const name = shardOf(account);
  const outbox = await outboxOfUs(name);
  await toEu.set("refuse");
  const items = await Promise.all(Array.from({ length: 30 }, () => outcome(account, 10)));
  await outbox.enqueue(items);
  expect(await outbox.flush(1000)).toBe(false);
  const health = await fetch(`${regions.us.adminUrl}/health`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { outboxes } = (await health.json()) as { outboxes: { name: string; waiting: number }[] };
  expect(outboxes.map((one) => one.name)).toEqual(allOutboxNames(["eu"]));
  expect(outboxes.find((one) => one.name === name)).toMatchObject({ waiting: 30, dead: 0 });
  expect(await account.fullBalance()).toMatchObject({ credits_micro: CREDITS, open_holds: 30 });
  await toEu.set("pass");
  await outbox.enqueue([await outcome(account, 1)]);
  await expect.poll(depthOfUs, RELAXED).toEqual(EMPTY);
  expect(await account.fullBalance()).toMatchObject({
    credits_micro: CREDITS - 301,
    held_micro: 0,
  });
});

it("an outbox delivers pending messages before a flush returns", async () => {
  const account = await Account.open(() => regions.eu, { credits: CREDITS });
  const outbox = await outboxOfUs(shardOf(account));
  await regions.toEu.set("reset-before");
  await outbox.enqueue([await outcome(account, 77)]);
  expect(await outbox.flush(1000)).toBe(false);
  await regions.toEu.set("pass");
  expect(await outbox.flush(1000)).toBe(true);
  expect(await account.balance()).toBe(CREDITS - 77);
});

it("an outbox delivers a revocation immediately even if replies are lost, and then repeats the revocation", async () => {
  const gone = revocation(4321);
  const outbox = await outboxOfUs(revocationsOutboxName("eu"));
  const before = regions.toEu.counts.forwarded;
  await regions.toEu.set("lose-reply");
  await outbox.enqueueRevocations([gone]);
  await expect.poll(() => regions.toEu.counts.forwarded, RELAXED).toBeGreaterThan(before);
  expect((await outbox.depth()).waiting).toBe(1);
  await regions.toEu.set("pass");
  await expect.poll(depthOfUs, RELAXED).toEqual(EMPTY);
  expect(regions.toEu.counts.forwarded).toBeGreaterThan(before + 1);
  expect(await deadSince(gone)).toBe(4321);
});

it("an outbox dead-letters an unknown organization's outcome with an alert, and delivers all others", async () => {
  const account = await Account.open(() => regions.eu, { credits: CREDITS });
  const outbox = await outboxOfUs(shardOf(account));
  const good = await outcome(account, 9);
  const holdId = mintId("req_", Date.now());
  await outbox.enqueue([{ ...good, holdId, orgId: randomUUID() }, good]);
  await expect.poll(depthOfUs, RELAXED).toEqual({ ...EMPTY, dead: 1 });
  expect(await account.balance()).toBe(CREDITS - 9);
  await expect
    .poll(() => regions.us.log.some(({ message }) => message.includes('"outbox_dead"')), RELAXED)
    .toBe(true);
});
