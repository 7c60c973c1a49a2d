import { expect, it } from "vitest";
import {
  isSessionOwnedBy,
  mintSession,
  verifySession,
} from "../../src/accounts/keys/session-token.ts";
import { effortFor } from "../effort.ts";

const a = { id: "a", secret: "a-secret-of-more-than-thirty-two-characters" };
const b = { id: "b", secret: "b-secret-of-more-than-thirty-two-characters" };
const keyHash = "0f".repeat(32);
const mint = { home: "eu", scope: "global", keyHash, orgId: "an organization" } as const;
const TERMS = {
  madeAt: 1,
  cut: 0,
  createdAt: 1_795_000_000_000,
  expiresAt: 1_795_000_060_000,
  endUser: "añn\u{1f600}",
  budgetMicro: null,
  allowedModels: ["sandbox/*"],
  rpmLimit: 3,
  origins: ["https://app.example.com"],
  tags: { customer: "cus_1" },
};

it("a session token signed with a listed secret is valid until that secret is removed", async () => {
  const { session, token } = await mintSession({ ...mint, secrets: [a, b] }, TERMS);
  expect(token).toMatch(/^svc_st_gbl_eu_a[\w-]+$/);
  expect(session).toMatchObject(TERMS);
  const verified = { hash: keyHash, home: "eu", scope: "global", shown: { session } };
  expect(await verifySession(token, [b, a])).toEqual(verified);
  expect(await verifySession(token, [b])).toBeNull();
  expect(await verifySession(token, [{ id: "a", secret: b.secret }])).toBeNull();
});

it("a session token with any changed character is rejected", async () => {
  const { token } = await mintSession({ ...mint, secrets: [a] }, TERMS);
  for (let i = 0; i < token.length; i++) {
    const changed = token.slice(0, i) + (token[i] === "A" ? "B" : "A") + token.slice(i + 1);
    expect([i, await verifySession(changed, [a])]).toEqual([i, null]);
  }
});

it("a session token identifies the key and organization even before the session's first use", async () => {
  const { session } = await mintSession({ ...mint, secrets: [a] }, TERMS);
  const is = (of: { orgId: string } | { keyHash: string }) =>
    isSessionOwnedBy(session.id, of, [b, a]);
  expect(await is({ orgId: "an organization" })).toBe(true);
  expect(await is({ keyHash })).toBe(true);
  expect(await is({ orgId: "another" })).toBe(false);
  expect(await is({ keyHash: "0e".repeat(32) })).toBe(false);
});

it(`session tokens have unique IDs even if created concurrently: ${effortFor(2000, 20_000)} tokens`, async () => {
  const count = effortFor(2000, 20_000);
  const minted = await Promise.all(
    Array.from({ length: count }, () => mintSession({ ...mint, secrets: [a] }, TERMS)),
  );
  expect(new Set(minted.map(({ session }) => session.id)).size).toBe(count);
});
