import { env } from "cloudflare:workers";
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, vi } from "vitest";
import type { RegionOutbox } from "../../src/index.ts";
import { shiftClock } from "../keys/key-fixture.ts";

export type Outbox = DurableObjectStub<RegionOutbox>;
type Counts = { readonly waiting: number; readonly dead: number; readonly parked: number };
export const EMPTY: Counts = { waiting: 0, dead: 0, parked: 0 };

/** Returns an outbox that no other test uses. The text after the slash can be anything. */
export function outboxOf(whose: "own" | "us"): Outbox {
  return env.REGION_OUTBOX.getByName(`${whose}/${crypto.randomUUID()}`);
}

export function eventually(seen: () => Promise<void> | void): Promise<void> {
  return vi.waitFor(seen, { timeout: 100_000, interval: 2 });
}

/** Runs alarms at this offset of the clock until `seen` holds. */
export function withAlarms(
  outbox: Outbox,
  offsetMs: number,
  seen: () => Promise<void> | void,
): Promise<void> {
  shiftClock(offsetMs);
  return eventually(async () => {
    await runDurableObjectAlarm(outbox);
    await seen();
  });
}

export async function depthIs(outbox: Outbox, depth: Counts): Promise<void> {
  const { waiting, dead, parked } = await outbox.depth();
  expect({ waiting, dead, parked }).toEqual(depth);
}

/** Returns when the alarm is due, on the platform's clock. */
export function armed(outbox: Outbox): Promise<number | null> {
  return runInDurableObject(outbox, (_outbox: RegionOutbox, state) => state.storage.getAlarm());
}

export function stored(outbox: Outbox): Promise<{ id: string; kind: string; state: string }[]> {
  return runInDurableObject(outbox, (_outbox: RegionOutbox, state) =>
    state.storage.sql
      .exec<{ id: string; kind: string; state: string }>(
        "SELECT id, kind, state FROM messages ORDER BY id, kind",
      )
      .toArray(),
  );
}

/** Deletes all messages. */
export function emptied(outbox: Outbox): Promise<void> {
  return runInDurableObject(outbox, async (_outbox: RegionOutbox, state) => {
    state.storage.sql.exec("DELETE FROM messages");
    await state.storage.deleteAlarm();
  });
}
