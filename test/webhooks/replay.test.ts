import { expect, it } from "vitest";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { EventRecord } from "../../src/shared/event.ts";
import { success } from "../../src/shared/failure.ts";
import { replayEvents } from "../../src/events/webhooks/deliveries.route.ts";

/** Returns this number of events at each of these times, oldest first. */
function logOf(counts: readonly (readonly [atMs: number, count: number])[]): EventRecord[] {
  return counts.flatMap(([createdAt, count]) =>
    Array.from({ length: count }, (_, n) => ({
      id: `evt_${createdAt}_${n}`,
      type: "key.revoked" as const,
      createdAt,
      actor: SYSTEM_ACTOR,
      subject: "key_1",
      data: {},
    })),
  );
}

it.each([
  ["a few events", [[1000, 3]]],
  ["one page after another", [[1000, 1000]]],
  [
    "a millisecond that is split between two pages",
    [
      [1000, 600],
      [1001, 600],
      [1002, 600],
    ],
  ],
  [
    "1,001 in one millisecond, some before and after",
    [
      [999, 2],
      [1000, 1001],
      [1001, 5],
    ],
  ],
  ["2,500 in one millisecond", [[1000, 2500]]],
] as const)(
  "a replay sends pages of events one after another until all events are sent: %s",
  async (_, counts) => {
    const log = logOf(counts);
    const queued = new Set<string>();
    let [since, pages] = [0, 0];
    for (let next: string | null = ""; next !== null; pages++) {
      expect(pages).toBeLessThan(5);
      const replayed = await replayEvents({
        since: async (limit) =>
          success(log.filter((one) => one.createdAt >= since).slice(0, limit)),
        queue: async (events) => {
          expect(events.length).toBeLessThanOrEqual(1000);
          for (const { id } of events) queued.add(id);
          return success(events.length);
        },
      });
      if (!replayed.ok) throw new Error("refused");
      next = replayed.value.next_since;
      if (next === null) break;
      expect(Date.parse(next)).toBeGreaterThan(since);
      since = Date.parse(next);
    }
    expect(queued.size).toBe(log.length);
  },
);
