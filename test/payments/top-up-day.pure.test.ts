import * as fc from "fast-check";
import { expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import {
  decideTopUp,
  enableTopUp,
  recordFailedTopUp,
  INITIAL_TOP_UP_STATE,
  recordTopUpRequest,
} from "../../src/money/wallet/rules/top-up.ts";

const MOST_A_DAY = 100_000_000;
const DAY_MS = 86_400_000;

it("a day's automatic top-ups stay within the daily limit, except the first top-up of the day", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ dollars: fc.integer({ min: 5, max: 1000 }), ms: fc.nat(DAY_MS) }), {
        maxLength: 60,
      }),
      (orders) => {
        let state = INITIAL_TOP_UP_STATE;
        let nowMs = Date.UTC(2026, 10, 26);
        const days = new Map<string, number[]>();
        for (const { dollars, ms } of orders) {
          nowMs += ms;
          const day = new Date(nowMs).toISOString().slice(0, 10);
          const month = day.slice(0, 7);
          const amountMicro = micros(dollars * 1_000_000);
          const setting = {
            belowMicro: micros(1e12),
            amountMicro,
            mostPerMonthMicro: micros(1e12),
          };
          const at = { setting, balance: micros(0), owed: micros(0), isShort: true };
          state = enableTopUp({ ...state, open: null, pausedUntil: null });
          const when = { month, day, dailyMaxMicros: MOST_A_DAY, nowMs };
          if (decideTopUp(state, { ...at, ...when }) !== "wanted") continue;
          state = recordTopUpRequest(
            state,
            { id: "pur", amountMicro, wantedAt: nowMs },
            { month, day },
          );
          days.set(day, [...(days.get(day) ?? []), amountMicro]);
        }
        for (const amounts of days.values()) {
          const sum = amounts.reduce((one, other) => one + other, 0);
          expect(amounts.length === 1 || sum <= MOST_A_DAY).toBe(true);
        }
      },
    ),
  );
});

it("automatic top-ups stay paused after a decline even if a person turns them on again", () => {
  const paused = {
    ...INITIAL_TOP_UP_STATE,
    disabledReason: "card_declined" as const,
    pausedUntil: 7,
  };
  expect(enableTopUp(paused)).toMatchObject({ disabledReason: null, pausedUntil: 7 });
});

it("automatic top-ups pause for 1, 6 and 24 hours after declines, and then stay off", () => {
  const end = { kind: "soft" } as const;
  let state = INITIAL_TOP_UP_STATE;
  const pauses = Array.from({ length: 4 }, () => {
    const amountMicro = micros(5_000_000);
    const when = { month: "2026-11", day: "2026-11-26" };
    state = recordTopUpRequest(state, { id: "pur", amountMicro, wantedAt: 0 }, when);
    state = recordFailedTopUp({ ...state, pausedUntil: null }, "pur", { end, nowMs: 0 });
    return [state.monthMicro, state.pausedUntil, state.disabledReason];
  });
  expect(pauses).toEqual([
    [0, 3_600_000, null],
    [0, 6 * 3_600_000, null],
    [0, 24 * 3_600_000, null],
    [0, null, "card_declined"],
  ]);
});

it("a declined automatic top-up doesn't count toward the daily limit", () => {
  const end = { kind: "soft" } as const;
  const when = { month: "2026-11", day: "2026-11-26" };
  const amountMicro = micros(60_000_000);
  const setting = { belowMicro: micros(1), amountMicro, mostPerMonthMicro: micros(1e12) };
  const requested = recordTopUpRequest(
    INITIAL_TOP_UP_STATE,
    { id: "pur", amountMicro, wantedAt: 0 },
    when,
  );
  const declined = recordFailedTopUp(requested, "pur", { end, nowMs: 0 });
  const at = { setting, balance: micros(0), owed: micros(0), isShort: true };
  const later = { ...at, ...when, dailyMaxMicros: MOST_A_DAY, nowMs: 3_600_000 };
  expect(decideTopUp(declined, later)).toBe("wanted");
});
