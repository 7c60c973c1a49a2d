import { runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { makeKey, shiftClock } from "./key-fixture.ts";
import { registerOf, MINUTE_MS } from "./register-fixture.ts";

afterEach(() => shiftClock(null));

it("a key's object returns the key's identity and remaining requests per minute", async () => {
  const { booked } = await makeKey({ rpmLimit: 3, scope: "global" });
  expect(await registerOf(booked.keyHash).admit()).toEqual({
    ok: true,
    keyId: booked.keyId,
    orgId: booked.orgId,
    memberId: booked.memberId,
    scope: "global",
    limit: 3,
    remaining: 2,
    resetMs: MINUTE_MS,
  });
});

it("a key's object writes one row per admission", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).admit();
  const written = await runInDurableObject(
    registerOf(booked.keyHash),
    async (register: KeyRegister, state) => {
      const exec = vi.spyOn(state.storage.sql, "exec");
      await register.admit();
      return exec.mock.results.map((result) => Number(Reflect.get(result.value, "rowsWritten")));
    },
  );
  expect(written).toEqual([1]);
});
