import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { recordMeasured } from "../measured.ts";
import { Account } from "./support/account.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

/** Number of requests, concurrent requests, and ms before the boundary at which they start. */
const REQUESTS = effortFor(500, 10_000);
const AT_ONCE = 16;
const BEFORE_MS = effortFor(2500, 20_000);
/** The US clock is ahead by this. */
const US_AHEAD_MS = 1000;
const CREDITS = 1_000_000_000;

/**
 * Micro-credits per token before and after the boundary, for the region's list and an
 * organization's own.
 */
const PRICES = {
  default: { before: 3, after: 7 },
  partners: { before: 2, after: 11 },
} as const;
type List = keyof typeof PRICES;

type Receipt = {
  readonly id: string;
  readonly cost_micro: number;
  readonly held_micro: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly price: { readonly input: number; readonly output: number };
  readonly price_from: string;
  readonly price_list: List;
};
type Sent = {
  readonly id: string;
  readonly cost: number;
  readonly account: Account;
  /** When it was sent and answered, by the called region's clock. */
  readonly from: number;
  readonly to: number;
};

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions({ us: { CLOCK_OFFSET_MS: String(US_AHEAD_MS) } });
});
afterAll(async () => regions.stop());

function priced(micros: number): string {
  const each = micros * 1_000_000;
  return JSON.stringify({ input: each, cached: each, cache_write: each, output: 2 * each });
}

/** Posts price rows far ahead, to a region that hasn't read any yet. */
async function post({ miniflare, name }: TestRegion, boundary: number): Promise<void> {
  const db = await miniflare.getD1Database("DB", `turnpike-${name}`);
  const insert = db.prepare(
    `INSERT INTO prices (id, list, item, from_at, price, posted_by, created_at)
     VALUES (?, ?, 'sandbox/echo', ?, ?, 'test', 0)`,
  );
  const rows = Object.entries(PRICES).flatMap(([list, { before, after }]) => [
    { list, at: boundary - 86_400_000, micros: before },
    { list, at: boundary, micros: after },
  ]);
  await db.batch(
    rows.map(({ list, at, micros }) => insert.bind(`${list}-${at}`, list, at, priced(micros))),
  );
}

/** Creates accounts in both regions. Those of the EU can call the US. */
async function accounts(): Promise<readonly Account[]> {
  const count = effortFor(4, 24);
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const home = index % 4 < 2 ? regions.eu : regions.us;
      const keyScope = home === regions.eu ? "global" : "regional";
      return Account.open(() => home, { credits: CREDITS, keyScope });
    }),
  );
}

function homeOf({ key }: Account): TestRegion {
  return key.includes("_eu_") ? regions.eu : regions.us;
}

async function give(home: TestRegion, { orgId }: Account, price_list: string): Promise<void> {
  const answer = await fetch(`${home.adminUrl}/orgs/${orgId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ price_list }),
  });
  assert.equal(answer.status, 200);
}

const BODY = JSON.stringify({
  model: "sandbox/echo",
  messages: [{ role: "user", content: "what does it cost now?" }],
  max_tokens: 64,
});

async function send(account: Account, where: TestRegion): Promise<Sent> {
  const ahead = where === regions.us ? US_AHEAD_MS : 0;
  const from = Date.now() + ahead;
  const answer = await fetch(`${where.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    body: BODY,
  });
  const text = await answer.text();
  if (answer.status === 503) {
    await sleep(500); // nothing was charged on a slow machine
    return send(account, where);
  }
  assert.equal(answer.status, 200, text);
  const id = answer.headers.get("x-request-id") ?? "";
  const cost = Number(answer.headers.get("x-cost-micro"));
  return { id, cost, account, from, to: Date.now() + ahead };
}

async function receiptsOf(account: Account): Promise<readonly Receipt[]> {
  const receipts: Receipt[] = [];
  for (let after = ""; ;) {
    const answer = await account.call(`/generations?limit=100${after && `&after=${after}`}`);
    const page = (await answer.json()) as { generations: Receipt[]; next_after?: string };
    receipts.push(...page.generations);
    if (page.next_after === undefined) return receipts;
    after = page.next_after;
  }
}

it("the price at a request's admission determines both the hold and the charge", async () => {
  const everyone = await accounts();
  const boundary = Date.now() + BEFORE_MS;
  await Promise.all([post(regions.eu, boundary), post(regions.us, boundary)]);
  for (const [index, account] of everyone.entries()) {
    if (index % 2 === 1) await give(homeOf(account), account, "partners");
  }
  const sent: Sent[] = [];
  const isEnough = (): boolean => sent.length >= REQUESTS && Date.now() > boundary + 1000;
  const worker = async (lane: number): Promise<void> => {
    for (let turn = lane; !isEnough(); turn++) {
      const account = everyone[turn % everyone.length];
      assert.ok(account !== undefined);
      const isGlobal = account.key.startsWith("svc_sk_gbl");
      const home = homeOf(account);
      const where = isGlobal && turn % 3 === 0 ? regions.us : home;
      sent.push(await send(account, where));
      if (sent.length > REQUESTS) await sleep(20); // slows down for the rest of the boundary
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => worker(lane)));

  const held = new Map<string, Set<number>>();
  const sides = new Set<string>();
  for (const account of everyone) {
    const { credits_micro: balance } = await account.resolved();
    const receipts = new Map((await receiptsOf(account)).map((one) => [one.id, one]));
    let total = 0;
    for (const one of sent.filter((each) => each.account === account)) {
      const receipt = receipts.get(one.id);
      assert.ok(receipt !== undefined);
      const begins = Date.parse(receipt.price_from);
      assert.ok(one.from < boundary || begins === boundary, "an old price after its end");
      assert.ok(one.to >= boundary || begins < boundary, "a price before it began");
      const side = begins === boundary ? "after" : "before";
      const micros = PRICES[receipt.price_list][side];
      expect(receipt.price).toMatchObject({ input: micros * 1e6, output: 2 * micros * 1e6 });
      const cost = micros * (receipt.prompt_tokens + 2 * receipt.completion_tokens);
      expect([receipt.cost_micro, one.cost]).toEqual([cost, cost]);
      expect(receipt.held_micro).toBeGreaterThanOrEqual(cost);
      const name = `${receipt.price_list} ${side}`;
      held.set(name, (held.get(name) ?? new Set()).add(receipt.held_micro / micros));
      sides.add(name);
      total += cost;
    }
    expect(CREDITS - balance).toBe(total);
  }
  // The same body holds the same number of tokens at any price, so a hold at the other price would
  // differ.
  expect([...sides].toSorted()).toHaveLength(4);
  const tokens = [...held.values()].flatMap((one) => Array.from(one));
  expect(new Set(tokens).size).toBe(1);
  recordMeasured({ around_price_boundary: sent.length });
}, 600_000);
