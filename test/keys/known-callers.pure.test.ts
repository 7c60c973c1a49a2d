import { expect, it } from "vitest";
import { NO_TERMS } from "../../src/shared/key-terms.ts";
import { KnownCallers } from "../../src/accounts/keys/authenticate.ts";

const KEY = { hash: "a".repeat(64), home: "eu" } as const;
const SECOND = { ...KEY, shown: { secret: "b".repeat(64) } };
const SAID = {
  keyId: "key_1",
  orgId: "org_1",
  memberId: "member_1",
  scope: "global",
  rpmLimit: 60,
  terms: NO_TERMS,
  secrets: null,
} as const;
const NOW_MS = 1_790_000_000_000;

it("a known caller's use in another region is reported at most once per 15 s", () => {
  const callers = new KnownCallers();
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

it("a known caller's secrets are reported separately, and only if used outside the home region", () => {
  const callers = new KnownCallers();
  callers.recordIdentified(KEY, SAID, NOW_MS);
  expect(callers.getIfRecentlyIdentified(SECOND, NOW_MS)).toBeUndefined();
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS - 1)).toBeUndefined();
  callers.addOwner(SECOND, SAID);
  expect(callers.get(SECOND)).toBeDefined();
  expect(callers.getIfRecentlyIdentified(SECOND, NOW_MS)).toBeUndefined();
});

it("a known caller is forgotten after the wallet rejects its key, so that the next use is reported again", () => {
  const callers = new KnownCallers();
  callers.recordIdentified(KEY, SAID, NOW_MS);
  callers.recordRefusal(KEY, { kind: "rate_limited", scope: "key", limit: 1, retryAfterMs: 1 });
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toBeDefined();
  callers.recordRefusal(KEY, { kind: "invalid_api_key" });
  expect(callers.isRevoked(KEY)).toBe(false);
  expect(callers.getIfRecentlyIdentified(KEY, NOW_MS)).toBeUndefined();
});

it("a known caller counts as rejected only if its secret or session can never work again", () => {
  const callers = new KnownCallers();
  callers.recordRefusal(KEY, { kind: "invalid_api_key", expiredAt: NOW_MS });
  expect(callers.isRevoked(KEY)).toBe(false);
  callers.recordRefusal(SECOND, { kind: "invalid_api_key", isForGood: true });
  expect([callers.isRevoked(SECOND), callers.isRevoked(KEY)]).toEqual([true, false]);
});
