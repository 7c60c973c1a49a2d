import { expect, it, vi } from "vitest";
import { runScheduled } from "../../src/operator/scheduled.ts";
import { outboxNames } from "../../src/regions/outbox-schedule.ts";
import { bindingsWith } from "../contract/client.ts";

it("the hourly sweep pokes every outbox, the peers' too, and one that fails stops no other (149)", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const poked: string[] = [];
  const getByName = (name: string) => ({
    poke: async () => {
      poked.push(name);
      if (name === "own/0") throw new Error("this one is down");
    },
  });
  await runScheduled(bindingsWith({ REGION_OUTBOX: { getByName } }));
  expect(poked.toSorted()).toEqual([...outboxNames(["us"])].toSorted());
  vi.restoreAllMocks();
});
