import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, vi } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import type { KeyAdmissionResult } from "../../src/shared/contracts/register.ts";

export const MINUTE_MS = 60_000;

export function registerOf(hash: string): DurableObjectStub<KeyRegister> {
  return env.KEY_REGISTER.getByName(hash);
}

/**
 * Returns how many of `count` concurrent requests are admitted. The others must be over the limit.
 */
export async function burst(hash: string, count: number): Promise<number> {
  const register = registerOf(hash);
  const answers = await Promise.all(Array.from({ length: count }, () => register.admit()));
  const kinds = new Set(answers.map(kindOf));
  kinds.delete("admitted");
  kinds.delete("rate_limited");
  expect([...kinds]).toEqual([]);
  return answers.filter((answer) => answer.ok).length;
}

/** Returns `admitted` or the kind of failure. */
export function kindOf(answer: KeyAdmissionResult): string {
  return answer.ok ? "admitted" : answer.failure.kind;
}

/** Returns the key object's stored admissions, oldest first. */
export function storedTimes(hash: string): Promise<number[]> {
  return runInDurableObject(registerOf(hash), (_register: KeyRegister, state) =>
    state.storage.sql
      .exec<{ at: number }>("SELECT at FROM admissions ORDER BY at")
      .toArray()
      .map((row) => row.at),
  );
}

/** Returns the maximum admissions in any 60 s, by brute force. */
export function worstMinute(times: readonly number[]): number {
  return Math.max(
    0,
    ...times.map((start) => times.filter((at) => at >= start && at < start + MINUTE_MS).length),
  );
}

/** Waits until `seen` holds, because the key object continues work after its responses. */
export function eventually(seen: () => Promise<void> | void): Promise<void> {
  return vi.waitFor(seen, { timeout: 100_000, interval: 2 });
}
