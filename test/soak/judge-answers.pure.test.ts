import { describe, expect, it } from "vitest";
import { judgeAnswers } from "../../scripts/soak/judge-answers.ts";
import type { Parties } from "../../scripts/soak/judge-answers.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { leftAt, refusalOf, START, traceOf } from "./a-run.ts";

const PARTIES: Parties = {
  dry: new Set(["dry"]),
  capped: new Set(["org bob"]),
  limited: new Set(["limited"]),
  revocations: new Map([["dead", { deletingMs: START, deletedMs: START }]]),
  runMaxMs: 20_000,
};
const RESTARTS = [{ region: "eu", fromMs: START, untilMs: START + 500 }] as const;

function broken(...traces: Trace[]): readonly string[] {
  return judgeAnswers(traces, RESTARTS, PARTIES).broken;
}

const LATER = START + 10_000;
const lost = (more: Partial<Trace>): Trace => leftAt(0, { fate: "broken", ...more });
const forged: Partial<Trace> = { kind: "forged", keyId: null, orgId: null };

it("a request may get what it earned", () => {
  const soon = { retryAfter: "1" };
  const earned = [
    traceOf(),
    leftAt(0),
    refusalOf(401, "invalid_api_key", forged),
    refusalOf(401, "invalid_api_key", { keyId: "dead" }),
    refusalOf(402, "insufficient_balance", { orgId: "dry" }),
    refusalOf(429, "rate_limit_exceeded", { retryAfter: "60" }),
    refusalOf(429, "rate_limit_exceeded", { orgId: "limited", isOrganizationLimit: true, ...soon }),
    refusalOf(429, "api_error", { code: "end_user_quota_exceeded", user: "bob" }),
    refusalOf(502, "upstream_error", { forced: "failure" }),
    refusalOf(502, "upstream_error", { forced: "overload" }),
    refusalOf(503, "api_error", { code: "upstream_overloaded", forced: "overload", ...soon }),
    refusalOf(503, "api_error", { code: "storage_unavailable", ...soon }),
    refusalOf(503, "api_error", { code: "home_region_unreachable", retryAfter: "30" }),
    refusalOf(404, "invalid_request_error", { kind: "wrong", shape: "unknown model" }),
    refusalOf(400, "invalid_request_error", { kind: "wrong", shape: "wrong field" }),
    refusalOf(403, "region_mismatch", { kind: "wrong", shape: "wrong region" }),
    traceOf({ fate: "cut", forced: "break" }),
    traceOf({ fate: "cut", endedMs: START + 20_000 }),
    refusalOf(502, "upstream_error", { endedMs: START + 20_000 }),
    lost({ sentMs: START - 900, endedMs: START - 800 }),
    lost({ sentMs: START + 400, endedMs: START + 30_000 }),
  ];
  expect(broken(...earned)).toEqual([]);
});

describe("an answer breaks the promise when it is", () => {
  it.each<[string, Trace]>([
    ["a 500", refusalOf(500, "api_error")],
    ["a 504", refusalOf(504, "api_error")],
    ["a 418", refusalOf(418, "api_error")],
    ["a 502 of an upstream that answers", refusalOf(502, "upstream_error")],
    ["a 502 before the deadline", refusalOf(502, "upstream_error", { endedMs: START + 19_999 })],
    ["a stream cut before the deadline", traceOf({ fate: "cut", endedMs: START + 19_999 })],
    ["a 503 without a retry-after", refusalOf(503, "api_error", { code: "overloaded" })],
    [
      "a 503 to come again in an hour",
      refusalOf(503, "api_error", { code: "overloaded", retryAfter: "3600" }),
    ],
    ["a 503 without a code", refusalOf(503, "api_error", { retryAfter: "1" })],
    [
      "a 503 misconfigured",
      refusalOf(503, "api_error", { code: "misconfigured", retryAfter: "30" }),
    ],
    [
      "an overload that nobody forced",
      refusalOf(503, "api_error", { code: "upstream_overloaded", retryAfter: "1" }),
    ],
    [
      "a 503 to a forged key",
      refusalOf(503, "api_error", { ...forged, code: "overloaded", retryAfter: "1" }),
    ],
    ["a 401 to a live key", refusalOf(401, "invalid_api_key")],
    ["a 402 to who can pay", refusalOf(402, "insufficient_balance")],
    ["a 429 without a retry-after", refusalOf(429, "rate_limit_exceeded")],
    [
      "an organisation's 429 where it has no limit",
      refusalOf(429, "rate_limit_exceeded", { isOrganizationLimit: true, retryAfter: "1" }),
    ],
    [
      "a quota of who has none",
      refusalOf(429, "api_error", { code: "end_user_quota_exceeded", user: "ann" }),
    ],
    ["a 404 for a model there is", refusalOf(404, "invalid_request_error")],
    ["a 400 for what is right", refusalOf(400, "invalid_request_error")],
    ["a 200 to a forged key", traceOf(forged)],
    ["a 200 to what is wrong", traceOf({ kind: "wrong", shape: "unknown model" })],
    ["a stream that ends with an error", traceOf({ fate: "cut" })],
    ["a stream without a last event", traceOf({ fate: "mute" })],
    ["such a one while its region restarts", traceOf({ fate: "mute", sentMs: START + 100 })],
    ["none at all", traceOf({ fate: "stuck" })],
    ["a connection lost while nothing restarts", lost({ sentMs: LATER, endedMs: LATER + 5 })],
    ["a connection lost while the other region restarts", lost({ region: "us" })],
  ])("%s", (_name, trace) => {
    expect(broken(traceOf(), trace)).toHaveLength(1);
  });
});
