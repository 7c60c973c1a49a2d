import { env } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import { configOf } from "../../src/shared/config/config.ts";
import { CONCURRENT_CALLS_MAX } from "../../src/shared/call-groups.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { afterTimeout } from "../../src/shared/timers.ts";
import { createOutboxGetter } from "../../src/models/requests/home-or-away.route.ts";

const OUTCOMES = 20;

function outcome(): OutcomeItem {
  const holdId = mintId("req_", Date.now());
  return { holdId, orgId: "org_1", kind: "void", cost: micros(0), generation: null };
}

/** Sends concurrent outcomes to an outbox. Returns the number of outcomes in each call. */
async function outcomesPerCall(attempt: number): Promise<number[]> {
  const parsed = configOf(env);
  if (!parsed.ok) throw new Error("the configuration is invalid");
  const received: (readonly OutcomeItem[])[] = [];
  const release = Promise.withResolvers<void>();
  const enqueue = async (items: readonly OutcomeItem[]): Promise<void> => {
    received.push(items);
    await release.promise;
  };
  const REGION_OUTBOX = { getByName: () => ({ enqueue }) };
  const outboxes = createOutboxGetter(
    parsed.config,
    { ...env, REGION_OUTBOX } as unknown as Env,
    afterTimeout,
  );
  const outcomes = Array.from({ length: OUTCOMES }, outcome);
  const sent = outcomes.map((one) => outboxes("outbox", attempt).enqueue([one]));
  await vi.waitFor(() => expect(received.length).toBeGreaterThanOrEqual(CONCURRENT_CALLS_MAX));
  release.resolve();
  await Promise.all(sent);
  expect(
    received
      .flat()
      .map(({ holdId }) => holdId)
      .toSorted(),
  ).toEqual(outcomes.map(({ holdId }) => holdId).toSorted());
  return received.map(({ length }) => length);
}

it("groups concurrent first calls to an outbox, and sends each outcome once", async () => {
  vi.spyOn(Date, "now").mockReturnValue(Date.now()); // no outcome waits too long on a slow machine
  const calls = await outcomesPerCall(1);
  expect(calls.slice(0, CONCURRENT_CALLS_MAX)).toEqual(Array(CONCURRENT_CALLS_MAX).fill(1));
  expect(calls.length).toBeLessThan(OUTCOMES);
});

it("sends each retry to an outbox alone", async () => {
  expect(await outcomesPerCall(2)).toEqual(Array(OUTCOMES).fill(1));
});
