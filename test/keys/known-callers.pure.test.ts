import { expect, it } from "vitest";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { KeyOwnerCache } from "../../src/accounts/keys/authenticate.ts";

const KEY = { hash: "a".repeat(64), home: "eu" } as const;
const SECOND = { ...KEY, shown: { secret: "b".repeat(64) } };
const SAID = {
  keyId: "key_1",
  orgId: "org_1",
  memberId: "member_1",
  scope: "global",
  rpmLimit: 60,
  terms: EMPTY_KEY_TERMS,
  secrets: null,
} as const;
const NOW_MS = 1_790_000_000_000;

it("the cache of known callers accepts an identified key for 15 s", () => {
  const callers = new KeyOwnerCache();
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toBeUndefined();
  expect(callers.recordIdentified(KEY, SAID, NOW_MS)).toMatchObject({
    orgId: "org_1",
    keyId: "key_1",
  });
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toMatchObject({
    orgId: "org_1",
    scope: "global",
  });
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS + 14_999)).toBeDefined();
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS + 15_000)).toBeUndefined();
});

it("the cache of known callers identifies each secret of a key separately", () => {
  const callers = new KeyOwnerCache();
  callers.recordIdentified(KEY, SAID, NOW_MS);
  expect(callers.getIfRecentlyIdentified(SECOND, NOW_MS)).toBeUndefined();
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS - 1)).toBeUndefined();
  callers.addOwner(SECOND, SAID);
  expect(callers.get(SECOND)).toBeDefined();
  expect(callers.getIfRecentlyIdentified(SECOND, NOW_MS)).toBeUndefined();
});

it("the cache of known callers evicts a key that is rejected as invalid", () => {
  const callers = new KeyOwnerCache();
  callers.recordIdentified(KEY, SAID, NOW_MS);
  callers.recordRefusal(KEY, { kind: "rate_limited", scope: "key", limit: 1, retryAfterMs: 1 });
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toBeDefined();
  callers.recordRefusal(KEY, { kind: "invalid_api_key" });
  expect(callers.isRevoked(KEY)).toBe(false);
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toBeUndefined();
});

it("the cache of known callers marks a key as revoked only after a permanent rejection", () => {
  const callers = new KeyOwnerCache();
  callers.recordRefusal(KEY, { kind: "invalid_api_key", expiredAt: NOW_MS });
  expect(callers.isRevoked(KEY)).toBe(false);
  callers.recordRefusal(SECOND, { kind: "invalid_api_key", isForGood: true });
  expect([callers.isRevoked(SECOND), callers.isRevoked(KEY)]).toEqual([true, false]);
});
