import * as fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { effort } from "../effort.ts";
import { setClock } from "../wallet/wallet-desk.ts";
import { keeping } from "./kept-client.ts";
import { KEPT_H, step, World } from "./kept-world.ts";

afterEach(() => {
  vi.restoreAllMocks();
  setClock(null);
});

it("a conversation continued from stored responses reaches the provider exactly like one sent in full", async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 2, maxLength: effort(8, 16) }),
    async (steps) => {
      vi.restoreAllMocks();
      setClock(null);
      const world = new World(await keeping(KEPT_H));
      for (const one of steps) await world.run(one);
    },
  );
  const { counterexample, errorInstance } = await fc.check(property, {
    numRuns: effort(5, 150),
  });
  expect(counterexample, String(errorInstance)).toBeNull();
});
