import { afterEach, describe, expect, it, vi } from "vitest";
import { SweepMetrics, outboxGauges } from "../../src/operator/sweep-metrics.ts";
import type { SweepTotals } from "../../src/operator/sweep-metrics.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const QUIET = {
  openHolds: 0,
  oldestHoldMs: null,
  isUnpublished: false,
  isInConflict: false,
  bytes: 1,
};

describe("the class SweepMetrics", () => {
  it("adds up open holds over several invocations, and reports the oldest hold and the largest wallet", () => {
    const first = new SweepMetrics();
    first.addWallet("a", { ...QUIET, openHolds: 2, oldestHoldMs: 5000, isUnpublished: true });
    first.countUnavailable();
    first.setDatabaseBytes(123);
    const depths = new SweepMetrics(JSON.parse(JSON.stringify(first.found())) as SweepTotals);
    depths.addWallet("b", {
      ...QUIET,
      openHolds: 1,
      oldestHoldMs: 9000,
      bytes: 700,
      isInConflict: true,
    });
    expect(depths.series()).toEqual({
      turnpike_holds_open: 3,
      turnpike_hold_oldest_seconds: 9,
      turnpike_wallets_unpublished: 1,
      turnpike_wallets_in_conflict: 1,
      turnpike_wallets_unavailable: 1,
      turnpike_wallet_bytes_max: 700,
      turnpike_book_bytes: 123,
    });
  });
});

describe("the function outboxGauges", () => {
  it("adds up a receiver's outboxes, keeps the oldest message, and counts unresponsive outboxes", () => {
    const empty = { waiting: 0, dead: 0, parked: 0, oldestMs: null };
    const series = outboxGauges([
      { name: "own/0", depth: { ...empty, waiting: 1, oldestMs: 1000 } },
      { name: "own/1", depth: null },
      { name: "own/15", depth: { waiting: 2, dead: 1, parked: 3, oldestMs: 4000 } },
      { name: "us/revocations", depth: empty },
    ]);
    expect(series).toEqual({
      turnpike_outboxes_silent: 1,
      'turnpike_outbox_messages{receiver="own",state="waiting"}': 3,
      'turnpike_outbox_messages{receiver="own",state="dead"}': 1,
      'turnpike_outbox_messages{receiver="own",state="parked"}': 3,
      'turnpike_outbox_messages{receiver="us/revocations",state="waiting"}': 0,
      'turnpike_outbox_messages{receiver="us/revocations",state="dead"}': 0,
      'turnpike_outbox_messages{receiver="us/revocations",state="parked"}': 0,
      'turnpike_outbox_oldest_seconds{receiver="own"}': 4,
      'turnpike_outbox_oldest_seconds{receiver="us/revocations"}': 0,
    });
  });
});

it.each([
  [6_999_999_999, 0],
  [7_000_000_000, 1],
])(
  "a database or wallet of %i bytes raises %i alerts if alerts start at 70 %% of the limit",
  (bytes, alerts) => {
    const lines: string[] = [];
    vi.spyOn(console, "error").mockImplementation((line: string) => void lines.push(line));
    const depths = new SweepMetrics();
    depths.addWallet("org", { ...QUIET, bytes });
    depths.setDatabaseBytes(bytes);
    expect(lines.filter((line) => line.includes('"alert":"wallet_large"'))).toHaveLength(alerts);
    expect(lines.filter((line) => line.includes('"alert":"book_large"'))).toHaveLength(alerts);
  },
);
