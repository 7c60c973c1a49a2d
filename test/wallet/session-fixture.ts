import type { Session } from "../../src/shared/session.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { valueOf } from "./wallet-fixture.ts";

export const SESSION_ID = `ses_${"0".repeat(40)}`;

/** Creates a session of the key for the next hour, by default without limits. */
export async function sessionOf(
  { stub, hash }: GatedKey,
  more: Partial<Session> = {},
): Promise<Session> {
  const { madeAt } = valueOf(await stub.keyStanding(hash));
  const nothing = { endUser: null, budgetMicro: null, allowedModels: null, rpmLimit: null };
  const createdAt = Date.now();
  const times = { madeAt, cut: 0, createdAt, expiresAt: createdAt + 3_600_000 };
  return { id: SESSION_ID, ...times, ...nothing, origins: null, ...more };
}
