import * as fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { setClock } from "../wallet/wallet-desk.ts";
import { openStoringAccount } from "./kept-client.ts";
import { KEPT_H, step, ConversationWorld } from "./kept-world.ts";

afterEach(() => {
  vi.restoreAllMocks();
  setClock(null);
});

it("a conversation continued from stored responses reaches the provider exactly like one sent in full", async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 2, maxLength: effortFor(8, 16) }),
    async (steps) => {
      vi.restoreAllMocks();
      setClock(null);
      const world = new ConversationWorld(await openStoringAccount(KEPT_H));
      for (const one of steps) await world.run(one);
    },
  );
  const { counterexample, errorInstance } = await fc.check(property, {
    numRuns: effortFor(5, 150),
  });
  expect(counterexample, String(errorInstance)).toBeNull();
});
