import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ADMISSIONS_MAX, RateWindow } from "../../src/shared/rate-window.ts";

/** A rate window with its storage. A restart keeps only what was stored. */
class Stored {
  readonly rows = new Map<number, number>();
  window = new RateWindow();

  restart(): void {
    this.window = new RateWindow([...this.rows].map(([slot, at]) => ({ slot, at })));
  }

  request(limit: number, clockMs: number): ReturnType<RateWindow["decide"]> {
    const decision = this.window.decide(limit, clockMs);
    if (decision.admitted) {
      this.rows.set(decision.entry.slot, decision.entry.at);
      this.window.append(decision.entry);
    }
    return decision;
  }
}

/** Returns the maximum admissions in any 60 s, by brute force. */
function worstMinute(times: readonly number[]): number {
  return Math.max(
    0,
    ...times.map((start) => times.filter((at) => at >= start && at < start + 60_000).length),
  );
}

it("a rate limit admits every request that fits, but never too many in 60 s, even across restarts", () => {
  const step = fc.record({
    afterMs: fc.oneof(fc.nat(50), fc.nat(3000), fc.nat(61_000)),
    burst: fc.integer({ min: 1, max: 15 }),
    restart: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.array(step, { maxLength: 40 }),
      (limit, steps) => {
        const stored = new Stored();
        const times: number[] = [];
        let clock = 1_000_000;
        for (const { afterMs, burst, restart } of steps) {
          clock += afterMs;
          if (restart) stored.restart();
          for (let i = 0; i < burst; i++) {
            const recent = times.filter((at) => at > clock - 60_000).length;
            const decision = stored.request(limit, clock);
            expect(decision.admitted).toBe(recent < limit);
            expect(decision.admitted ? decision.remaining : 0).toBe(
              Math.max(0, limit - recent - 1),
            );
            if (decision.admitted) times.push(clock);
          }
        }
        expect(worstMinute(times)).toBeLessThanOrEqual(limit);
      },
    ),
  );
});

it("a rate limit admits one request after retryAfterMs, and none a millisecond before", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(70_000), { minLength: 1, maxLength: 60 }), (gaps) => {
      const stored = new Stored();
      let clock = 1_000_000;
      for (const gap of gaps) {
        clock += gap;
        const decision = stored.request(5, clock);
        if (decision.admitted) continue;
        expect(decision.retryAfterMs).toBeGreaterThanOrEqual(1);
        expect(decision.retryAfterMs).toBeLessThanOrEqual(60_000);
        expect(stored.window.decide(5, clock + decision.retryAfterMs - 1).admitted).toBe(false);
        expect(stored.window.decide(5, clock + decision.retryAfterMs).admitted).toBe(true);
      }
    }),
  );
});

it("a rate limit returns the wait for the next free slot as resetMs, or as retryAfterMs after a rejection", () => {
  const stored = new Stored();
  expect(stored.request(3, 0)).toMatchObject({ remaining: 2, resetMs: 60_000 });
  expect(stored.request(3, 10_000)).toMatchObject({ remaining: 1, resetMs: 50_000 });
  expect(stored.request(3, 20_000)).toMatchObject({ remaining: 0, resetMs: 40_000 });
  expect(stored.request(3, 20_000)).toEqual({ admitted: false, retryAfterMs: 40_000 });
  expect(stored.request(3, 65_000)).toMatchObject({ remaining: 0, resetMs: 5000 });
});

it("a rate limit's full ring buffer keeps its order after a restart, wherever the buffer starts", () => {
  fc.assert(
    fc.property(fc.nat(2500), fc.integer({ min: 1, max: 400 }), (more, perTick) => {
      const stored = new Stored();
      const count = ADMISSIONS_MAX + more;
      for (let i = 0; i < count; i++) {
        // Far enough apart that every request passes, in ticks of equal times.
        stored.request(ADMISSIONS_MAX, Math.floor(i / perTick) * 60_000 * perTick);
      }
      const before = stored.window.decide(ADMISSIONS_MAX, 1e12);
      const next = stored.window.decide(perTick, Math.floor(count / perTick) * 60_000 * perTick);
      stored.restart();
      expect(stored.window.decide(ADMISSIONS_MAX, 1e12)).toEqual(before);
      expect(
        stored.window.decide(perTick, Math.floor(count / perTick) * 60_000 * perTick).admitted,
      ).toBe(next.admitted);
    }),
    { numRuns: 30 },
  );
});

it("a rate limit uses the last admission's time while the clock is behind, and corrects future times", () => {
  const stored = new Stored();
  for (let i = 0; i < 3; i++) stored.request(3, 100_000);
  expect(stored.window.lagMs(70_000)).toBe(30_000);
  expect(stored.request(3, 70_000)).toEqual({ admitted: false, retryAfterMs: 60_000 });
  expect(stored.request(4, 70_000)).toMatchObject({ admitted: true, entry: { at: 100_000 } });
  stored.window.clamp(20_000);
  expect(stored.window.lagMs(20_000)).toBe(0);
  expect(stored.window.decide(4, 79_999).admitted).toBe(false);
  expect(stored.window.decide(4, 80_000).admitted).toBe(true);
});
