import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import { Account, sumOf } from "./support/account.ts";
import { killRegion } from "./support/kill-region.ts";
import { recordMeasured } from "../measured.ts";
import { startPersistentRegion } from "./support/two-regions.ts";

const CREDITS = 10_000_000;
const ROUNDS = 4;
const REQUESTS = 100;
const CALLERS = 6;
const AFTER_HOLDS_END_MS = String(25 * 60_000);

let kept: Awaited<ReturnType<typeof startPersistentRegion>>;
beforeAll(async () => {
  kept = await startPersistentRegion();
});
afterAll(() => kept.stop());

/** A complete paid response with its reported cost. */
type Answered = { readonly id: string; readonly cost: number };

/** Sends one request and reads the whole response. Returns null if it failed or cost nothing. */
type Shape = (account: Account, input: string, user: string) => Promise<Answered | null>;

const ENDING: readonly Shape[] = [
  (account, input, user) => plain(account.chat(chatOf("echo", { input, user }))),
  (account, input, user) => streamed(account.chat(chatOf("echo", { input, user, stream: true }))),
  (account, input, user) =>
    plain(account.call("/embeddings", { model: "sandbox/embed", input: [input, "b"], user })),
  (account, input, user) => plain(account.chat(chatOf("status-500", { input, user }))),
];
const HANGING: readonly Shape[] = [
  (account, input, user) => streamed(account.chat(chatOf("stall", { input, user, stream: true }))),
  (account, input, user) =>
    streamed(account.chat(chatOf("endless", { input, user, stream: true }))),
];

function chatOf(model: string, fields: { input: string; user: string; stream?: boolean }): object {
  const { input, user, stream = false } = fields;
  const options = stream ? { stream_options: { include_usage: true } } : {};
  const messages = [{ role: "user", content: input }];
  return { model: `sandbox/${model}`, messages, user, max_tokens: 200, stream, ...options };
}

async function plain(sent: Promise<Response>): Promise<Answered | null> {
  const response = await sent;
  await response.text();
  if (response.status !== 200) return null;
  return { id: idOf(response), cost: Number(response.headers.get("x-cost-micro")) };
}

async function streamed(sent: Promise<Response>): Promise<Answered | null> {
  const response = await sent;
  const text = await response.text();
  const cost = /"cost_micro":(\d+)/.exec(text)?.[1];
  if (cost === undefined || !text.includes("data: [DONE]")) return null;
  return { id: idOf(response), cost: Number(cost) };
}

function idOf(response: Response): string {
  return response.headers.get("x-request-id") ?? "";
}

/**
 * Runs requests that hang and sequential callers, and kills the region after this number of
 * responses.
 */
async function killedInMidLoad(account: Account, answers: number): Promise<Answered[]> {
  const answered: Answered[] = [];
  const enough = Promise.withResolvers<void>();
  const pid = workerdPid(kept.region().port);
  const send = async (shapes: readonly Shape[], i: number): Promise<void> => {
    const input = randomBytes(1 + (i % 40)).toString("hex");
    const sent = shapes[i % shapes.length]?.(account, input, `user-${i % 5}`);
    const answer = (await sent?.catch(() => null)) ?? null; // null if the region was killed first
    if (answer !== null) answered.push(answer);
    if (answered.length >= answers) enough.resolve();
  };
  const hanging = Array.from({ length: REQUESTS / 4 }, (_, i) => send(HANGING, i));
  let next = hanging.length;
  const caller = async (): Promise<void> => {
    while (next < REQUESTS) await send(ENDING, next++);
  };
  const callers = Array.from({ length: CALLERS }, caller);
  await enough.promise;
  await killRegion(kept.region(), pid);
  await Promise.all([...hanging, ...callers]);
  return answered;
}

describe("a region restarted with its stored data", () => {
  it("keeps balances, keys and the requests counted against a key's limit", async () => {
    const account = await Account.open(kept.region, { credits: 5000, rpmLimit: 10 });
    const body = { model: "sandbox/echo", messages: [{ role: "user", content: "stay" }] };
    const paid = await account.chat(body);
    const balance = 5000 - Number(paid.headers.get("x-cost-micro"));
    await kept.restart();
    const again = await account.chat(body);
    expect(again.status).toBe(200);
    expect(again.headers.get("x-ratelimit-remaining-requests")).toBe("8");
    expect(await account.balance()).toBe(balance - Number(again.headers.get("x-cost-micro")));
    expect(await account.differences()).toEqual([]);
  });
});

describe("a region that is killed repeatedly under load", () => {
  it(`loses no charge of a completed request, and ends every hold: ${ROUNDS} kills, ${REQUESTS} requests each`, async () => {
    const account = await Account.open(kept.region, { credits: CREDITS });
    const answered: Answered[] = [];
    let lost = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      answered.push(...(await killedInMidLoad(account, 10 * round)));
      const rows = await account.ledger();
      const { credits_micro } = await account.fullBalance();
      expect(sumOf(rows)).toBe(credits_micro);
      const charges = new Map(rows.map((row) => [row.generation_id, -row.amount_micro]));
      lost += answered.filter(({ id, cost }) => charges.get(id) !== cost).length;
      for (const { id, cost } of answered) expect(charges.get(id)).toBe(cost);
      expect(charges.size).toBe(rows.length);
    }
    recordMeasured({ kills: ROUNDS, answered: answered.length, lost });
    expect(answered.length).toBeGreaterThanOrEqual(100);
    expect((await account.fullBalance()).open_holds).toBeGreaterThan(0);

    await kept.restart({ CLOCK_OFFSET_MS: AFTER_HOLDS_END_MS });
    const balance = await account.resolved();
    expect(balance.held_micro).toBe(0);
    const rows = await account.ledger();
    expect(sumOf(rows)).toBe(balance.credits_micro);
    const book = await account.published();
    expect(book.balance).toBe(balance.credits_micro);
    const spent = CREDITS - balance.credits_micro;
    const total = (name: string, from: typeof book.days) =>
      from.reduce((sum, row) => sum + Number(row[name]), 0);
    expect(total("cost_micro", book.days)).toBe(spent);
    expect(total("monthly_spend_micro", book.endUsers)).toBe(spent);
    expect(await account.differences()).toEqual([]);
  });
});
