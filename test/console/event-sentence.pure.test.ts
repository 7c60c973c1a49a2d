import { expect, it } from "vitest";
import type { Event } from "../../src/console/browser/api/types.ts";
import {
  EVENT_TYPES,
  HIGHLIGHTED_EVENT_TYPE_PATTERN,
} from "../../src/console/browser/lib/event-types.ts";
import { describeEvent } from "../../src/console/browser/lib/event-sentence.ts";

const NAMES: Readonly<Record<string, string>> = {
  key_1: "Server",
  key_2: "Ann",
  mem_1: "Dana",
};
const nameOf = (id: string): string => NAMES[id] ?? id;
const KEY = { kind: "key", id: "key_2" } as const;
const OPERATOR = { kind: "operator", id: "admin" } as const;
const SYSTEM = { kind: "system", id: null } as const;
const sentenceOf = (
  type: Event["type"],
  subject: string,
  data: Event["data"],
  actor: Event["actor"] = SYSTEM,
): string => describeEvent({ id: "evt_1", type, created_at: "", actor, subject, data }, nameOf);

const QUIET = [
  "balance.credited",
  "balance.charged",
  "purchase.created",
  "purchase.credited",
  "purchase.expired",
  "payment.reinstated",
  "payment.forgiven",
  "end_user.changed",
  "key.created",
  "key.changed",
  "key.rotated",
  "key.revoked",
  "pause.ended",
  "session.ended",
  "member.created",
  "member.changed",
  "member.removed",
  "invitation.created",
  "invitation.ended",
  "settings.changed",
  "organization.created",
  "organization.changed",
  "organization.wallet_rebuilt",
  "organization.events_left_out",
  "operator.viewed",
  "webhook.created",
  "webhook.changed",
  "webhook.rotated",
  "webhook.deleted",
];

it("every event type needs attention unless this test lists the type as quiet", () => {
  expect(
    EVENT_TYPES.map(([type]) => type).filter((type) => !HIGHLIGHTED_EVENT_TYPE_PATTERN.test(type)),
  ).toEqual(QUIET);
});

it("the sentence for an event contains amounts and names", () => {
  const credit = { amount_micro: 40_000_000, balance_micro: 93_840_000, reference: "invoice 62" };
  expect(sentenceOf("balance.credited", "org", credit, OPERATOR)).toBe(
    "admin (operator) added $40.00: invoice 62; balance $93.84.",
  );
  const taken = { amount_micro: -10_000_000, reference: "owed:1788055671791:4382" };
  expect(sentenceOf("balance.credited", "org", taken, { kind: "system", id: null })).toBe(
    "Turnpike took $10.00: a payment was refunded or disputed.",
  );
  const low = { threshold_micro: 10_000_000, balance_micro: 9_980_000 };
  expect(sentenceOf("balance.low", "org", low)).toBe("Balance is below $10.00: $9.98 left.");
  const alert = { period: "2026-11", threshold: 0.9, quota_micro: 780_000 };
  expect(sentenceOf("end_user.alert", "user_003", alert)).toBe(
    "user_003 has used 90% of its monthly quota of $0.78.",
  );
  expect(sentenceOf("end_user.alert", "user_003", { ...alert, period: "2026-11-25" })).toBe(
    "user_003 has used 90% of its daily quota of $0.78.",
  );
  const reached = { period: "day", since: "2026-11-25", quota_micro: 2_000_000, left_micro: 0 };
  expect(sentenceOf("end_user.quota_reached", "user_003", reached)).toBe(
    "user_003 has used up today's quota of $2.00; new requests are rejected until 00:00 UTC.",
  );
  const quota = { changes: { daily_quota_micro: { from: 2_000_000, to: null } } };
  expect(sentenceOf("end_user.changed", "user_003", quota, KEY)).toBe(
    "Ann changed user_003: daily quota none (before: $2.00).",
  );
  const changes = { budget_dollars: { from: null, to: 20 } };
  expect(sentenceOf("key.changed", "key_1", { changes }, KEY)).toBe(
    "Ann changed Server: budget $20.00 (before: none).",
  );
  const createdKey = { name: "Server", scope: "regional", rpm_limit: 600, member_id: "mem_1" };
  expect(sentenceOf("key.created", "key_1", createdKey, KEY)).toBe(
    "Ann created Server: 600 requests per 60 s.",
  );
  const rotated = { others_end_at: "2026-11-27T14:02:00.000Z", sessions_ended: false };
  expect(sentenceOf("key.rotated", "key_1", rotated, KEY)).toBe(
    "Server has a new secret; the old one works until 2026-11-27 14:02 UTC.",
  );
  expect(sentenceOf("key.revoked", "key_1", {}, OPERATOR)).toBe("admin (operator) revoked Server.");
  expect(sentenceOf("webhook.disabled", "whk_1", { reason: "failing" })).toBe(
    "The webhook whk_1 is off: no successful delivery for five days.",
  );
});

const status = (from: string, to: string) => ({ changes: { status: { from, to } } });

it("the sentence for a changed organization names the organization and each change", () => {
  const id = "0199a6f0-1111-4222-8333-444455556666";
  expect(sentenceOf("organization.changed", id, status("active", "suspended"), OPERATOR)).toBe(
    "admin (operator) suspended the organization.",
  );
  expect(sentenceOf("organization.changed", id, status("suspended", "active"), OPERATOR)).toBe(
    "admin (operator) resumed the organization.",
  );
  expect(sentenceOf("organization.changed", id, { closed: true }, OPERATOR)).toBe(
    "admin (operator) closed the organization.",
  );
  const changes = { ...status("active", "suspended").changes, name: { from: "A", to: "B" } };
  expect(sentenceOf("organization.changed", id, { changes }, OPERATOR)).toBe(
    "admin (operator) changed the organization: status suspended (before: active), name B (before: A).",
  );
});

it("an event's sentence names a member by ID if the member's name is unknown", () => {
  const id = "0199a6f0-1111-4222-8333-444455556666";
  expect(sentenceOf("key.revoked", "key_1", {}, { kind: "member", id })).toBe(
    "member 0199a6f0 revoked Server.",
  );
});

it("the sentence for changed settings contains the new limits, with amounts in dollars", () => {
  const topUp = { belowMicro: 5_000_000, amountMicro: 25_000_000, mostPerMonthMicro: 100_000_000 };
  const policy = { allowed_models: null, allowed_providers: null, allowed_data_regions: ["eu"] };
  const changes = {
    autoTopUp: { from: null, to: topUp },
    policy: { from: policy, to: { ...policy, allowed_providers: ["openai", "mistral"] } },
    defaultUserDailyQuotaMicro: { from: 500_000, to: 250_000 },
    budgets: { from: [], to: [{ unit: "dollars", amount: 5_000_000, window: "day" }] },
  };
  expect(sentenceOf("settings.changed", "org", { changes }, KEY)).toBe(
    "Ann changed the settings: " +
      "automatic top-up $25.00 below $5.00, at most $100.00 a month (before: none), " +
      "providers openai, mistral (before: all), " +
      "default user daily quota $0.25 (before: $0.50), " +
      "budgets $5.00 per day (before: none).",
  );
});

it("the sentences for a new and a changed key contain the key's budget and models", () => {
  const createdKey = {
    name: "Laptop",
    rpm_limit: 60,
    budget_micro: 5_000_000,
    budget_period: "month",
    allowed_models: '["smart"]',
  };
  expect(sentenceOf("key.created", "key_1", createdKey, KEY)).toBe(
    "Ann created Laptop: 60 requests per 60 s, $5.00 a month, only smart.",
  );
  const changes = { policy: { from: null, to: '{"allowed_models":["smart"]}' } };
  expect(sentenceOf("key.changed", "key_1", { changes }, KEY)).toBe(
    "Ann changed Server: models smart (before: all).",
  );
});

it("the sentence for a changed key contains the expiry as a date and each permission as on or off", () => {
  const changes = {
    expires_at: { from: null, to: Date.parse("2027-01-01T00:00:00Z") },
    may_hold: { from: null, to: 1 },
  };
  expect(sentenceOf("key.changed", "key_1", { changes }, KEY)).toBe(
    "Ann changed Server: expires at 2027-01-01 00:00 UTC (before: none), " +
      "placing holds on (before: off).",
  );
});

it("the sentence for a pause names the paused key", () => {
  const data = { scope: "key", reason: "leaked" };
  expect(sentenceOf("pause.created", "key_1", data, KEY)).toBe("Ann paused Server: leaked.");
  expect(sentenceOf("pause.ended", "key_9", { scope: "key" }, KEY)).toBe("Ann resumed a key.");
});

it("the sentence for a pause of an end user names the end user until the end user is deleted", () => {
  const data = { scope: "end_user", end_user: "ben" };
  expect(sentenceOf("pause.created", "usr_1", data, KEY)).toBe("Ann paused ben.");
  const deleted = { scope: "end_user", pause_id: "pau_9" };
  expect(sentenceOf("pause.ended", "usr_1", deleted, KEY)).toBe("Ann resumed an end user.");
});

it("the sentence for an end user's budget names the end user instead of the event's subject ID", () => {
  const data = { scope: "end_user", end_user: "ann", window: "day" };
  const id = crypto.randomUUID();
  expect(sentenceOf("budget.reached", id, data)).toBe("The budget of ann per day is used up.");
  expect(sentenceOf("budget.alert", id, data)).toMatch("The budget of ann ");
});

it("the sentence for an end user mentions no member, even if the end user's ID looks like a member's ID", () => {
  const id = "0b5f2f5c-0000-4000-8000-000000000000";
  expect(sentenceOf("end_user.quota_reached", id, { period: "day" })).toMatch(`${id} has used up`);
  expect(sentenceOf("member.removed", id, {}, KEY)).toBe("Ann removed member 0b5f2f5c.");
});

it("every event type has a sentence, even for an event without data", () => {
  for (const [type] of EVENT_TYPES) {
    for (const data of [{}, { left_out: ["data"] }]) {
      const sentence = sentenceOf(type, "subject", data, KEY);
      expect(sentence, type).toMatch(/^\S.*[^ ,:;]\.$/);
      expect(sentence, type).not.toMatch(/undefined|null|NaN|\[object/);
    }
  }
});
