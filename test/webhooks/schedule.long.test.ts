import { env } from "cloudflare:workers";
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import { addCredits } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  HOUR,
  ids,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  waitUntilAttempted,
  useReceivers,
} from "./receivers.ts";
import type { Delivery } from "./receivers.ts";

useReceivers();

const WAITS_S = [5, 300, 1800, 7200, 18_000, 36_000, 36_000, 36_000, 36_000];
const EARLY_MS = 30_000;
const types = ["balance.credited"];

/** Returns the earliest and latest time of the next attempts, Unix ms. */
function dueOf(all: readonly Delivery[]): { readonly first: number; readonly last: number } {
  const due = all.map(({ next_attempt_at: next }) => Date.parse(next ?? ""));
  return { first: Math.min(...due), last: Math.max(...due) };
}

/** Checks that the object's alarm is set for this time of the shifted clock. */
async function alarmStandsFor(at: number): Promise<void> {
  const { CLOCK_OFFSET_MS = "0" } = env as { CLOCK_OFFSET_MS?: string };
  await vi.waitFor(async () => {
    const set = await runInDurableObject(object(), (_, { storage }) => storage.getAlarm());
    const stands = (set ?? 0) + Number(CLOCK_OFFSET_MS);
    expect(stands).toBeGreaterThanOrEqual(at);
    expect(stands).toBeLessThan(at + 2000);
  }, LONG);
}

it("a webhook delivery gets ten attempts in two days, and none afterwards", async () => {
  let attempt = 1;
  receivers["late.turnpike.dev"] = () => new Response("", { status: attempt === 10 ? 200 : 503 });
  receivers["never.turnpike.dev"] = () => new Response("", { status: 503 });
  const late = await createWebhook("late.turnpike.dev", { types });
  const never = await createWebhook("never.turnpike.dev", { types });
  await addCredits(account.orgId, 1);
  await vi.waitFor(() => expect(ids("never.turnpike.dev")).toHaveLength(1), LONG);
  await vi.waitFor(() => expect(ids("late.turnpike.dev")).toHaveLength(1), LONG);
  for (const wait of WAITS_S) {
    if (wait === 5) {
      // The platform's own clock starts this attempt, perhaps before a slow machine has read the
      // first.
      attempt += 1;
      continue;
    }
    const all = await waitUntilAttempted([late, never], attempt);
    expect(all).toHaveLength(2);
    for (const { last_attempt_at: last, next_attempt_at: next } of all) {
      expect(Date.parse(next ?? "") - Date.parse(last ?? "")).toBe(wait * 1000);
    }
    const { first, last } = dueOf(all);
    attempt += 1;
    const before = callsTo("late.turnpike.dev").length;
    setClock(first - EARLY_MS);
    expect(await runDurableObjectAlarm(object())).toBe(true);
    await alarmStandsFor(first);
    expect(callsTo("late.turnpike.dev")).toHaveLength(before);
    setClock(last);
    expect(await runDurableObjectAlarm(object())).toBe(true);
  }
  const ended = await waitUntilAttempted([late, never], 10);
  const states = ended.map(({ state, next_attempt_at: next }) => ({ state, next }));
  const gone = { state: "failed", next: null };
  const done = { state: "delivered", next: null };
  expect(states).toEqual([done, gone]);
  for (const host of ["late.turnpike.dev", "never.turnpike.dev"]) {
    expect(callsTo(host)).toHaveLength(10);
    expect(ids(host)).toHaveLength(1);
    for (const id of ids(host)) expectSchedule(host, id);
  }
  setClock(Date.now() + 60 * HOUR);
  await runDurableObjectAlarm(object());
  await waitUntilAttempted([late, never], 10);
  expect(callsTo("never.turnpike.dev")).toHaveLength(10);
}, 120_000);

/** Checks the pauses between attempts by the receiver's times and the second of each signature. */
function expectSchedule(host: string, id: string | null): void {
  const seconds = callsTo(host)
    .filter(({ headers }) => headers.get("webhook-id") === id)
    .map(({ headers }) => Number(headers.get("webhook-timestamp")));
  const waits = seconds.slice(1).map((at, i) => at - (seconds[i] ?? 0));
  for (const [i, wait] of waits.entries()) {
    // The signature's time is in whole seconds.
    expect(wait).toBeGreaterThanOrEqual((WAITS_S[i] ?? 0) - 1);
    expect(wait).toBeLessThan((WAITS_S[i] ?? 0) + 60);
  }
  expect((seconds.at(-1) ?? 0) - (seconds[0] ?? 0)).toBeGreaterThan(47 * 3600);
}
