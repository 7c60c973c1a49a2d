import { beforeAll, describe, expect, it } from "vitest";
import { GENERATION, newId } from "../wallet/wallet-fixture.ts";
import { account, callWebhooks, createWebhook, useReceivers } from "../webhooks/receivers.ts";
import { admin, newOrganization, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { readOrganizationData } from "./organization-data.ts";
import { sendUser } from "./end-users.ts";
import { expectInvalid, expectInvalidValues } from "./invalid-fields.ts";
import type { InvalidValues } from "./invalid-fields.ts";
import { createKey } from "./key-client.ts";
import { createSession } from "./session-client.ts";

/** A call with a valid body, and the invalid values of its fields. */
type Call = {
  readonly send: (body: Readonly<Record<string, unknown>>) => Promise<Response>;
  readonly valid: () => Readonly<Record<string, unknown>>;
  readonly invalid: InvalidValues;
};

let owner: Account;
/** A key with `SESSION_TERMS`, a budget of one dollar, and an expiry in about an hour. */
let limited: string;
const SESSION_TERMS = { end_user: "ann", allowed_models: ["sandbox/echo"], rpm_limit: 100 };
const PAGE = "https://app.example.com";
beforeAll(async () => {
  owner = await openAccount();
  await send("/v1/users", { key: owner.key, body: { external_id: "u" } });
  const expires_at = new Date(Date.now() + 3_660_000).toISOString();
  const terms = { ...SESSION_TERMS, budget_dollars: 1, expires_at };
  limited = (await createKey(owner.key, terms)).key;
  await createSession(limited, { ...SESSION_TERMS, budget_dollars: 1 });
});

const NAMES = ["", "  ", "a\u0000b", "a\nb", "\u0085", "a\r\nSet-Cookie: b", 5, null, ["a"]];
const LIMITS = [0, -1, 1001, 1.5, "60", true, 1e300];
const SLUGS = ["", "ab", "x".repeat(33), "Abc", "a_b", "--", "ä-b", "a b", "a\nb", "abc\n", null];
const LONG_EMAILS = [`${"x".repeat(250)}@example.com`, `${"x".repeat(65)}@example.com`];
const UNSAFE_EMAILS = ["ä@example.com", "a@example.com\r\nBcc: b@example.com"];
const EMAILS = ["nobody", "", null, 5, "a@mail-.example.com", ...LONG_EMAILS, ...UNSAFE_EMAILS];
const EXTERNAL_IDS = ["", ".", "..", "a\u0000", "a\r\nb", "a\u2028b", "a\u0085b"];
const ROLES = ["root", "Owner", "", null, ["owner"]];
const AMOUNTS = [0.0000001, 1.0000005, 5e-324, -0.000001, -1, 1_000_000_000.000001, 1e308];
const DOLLARS = [...AMOUNTS, "5", "", "NaN", true, [], [1], {}];
const THRESHOLDS = [-0.1, 1.1, 1.0000001, 80, null, "0.8", true, []];
const CONCURRENT = [0, 1.5, -1, "3", 10_001];
const QUOTAS: InvalidValues = { monthly_quota_dollars: DOLLARS, daily_quota_dollars: DOLLARS };
const KEY_TERMS: InvalidValues = {
  budget_dollars: [-1, 0.0000001, "5"],
  budget_period: ["year", "day"],
  tpm_limit: [0, 1.5],
  max_concurrent: CONCURRENT,
  allowed_models: [[], "smart", Array.from({ length: 101 }, () => "smart")],
  "allowed_models[0]": [["nobody/*"]],
  "allowed_models[1]": [["sandbox/echo", "no/such"]],
  end_user: ["", "a\u0000"],
  expires_at: ["2001-01-01T00:00:00Z", "tomorrow", "2099-01-01", 4_070_908_800],
};
const day = (fields: object): readonly object[] => [{ limit_dollars: 1, window: "day", ...fields }];
const BUDGETS: InvalidValues = {
  budgets: [
    Array.from({ length: 9 }, (_, i) => ({ limit_dollars: 1, window: `${i + 1}m` })),
    [...day({}), ...day({ limit_dollars: 2 })],
  ],
  "budgets[0]": [[{ window: "60m" }], day({ limit_tokens: 5 }), day({ color: "red" })],
  "budgets[0].window": [day({ window: "1441m" }), day({ window: "0m" })],
  "budgets[0].limit_dollars": [day({ limit_dollars: 0.0000001 })],
  "budgets[0].models[0]": [day({ models: ["smart"] })],
  "budgets[0].on_exceeded": [day({ on_exceeded: "explode" })],
};
const topUp = (amount: number) => ({
  below_dollars: 5,
  amount_dollars: amount,
  most_per_month_dollars: 1e10,
});
const { usage, price } = GENERATION;
const charged = (fields: object) => ({ ...GENERATION, keyId: owner.keyId, ...fields });
const charges = (...fields: readonly object[]): readonly object[] => fields.map(charged);
const LOCAL = ["http://hooks.turnpike.dev/", "https://192.168.0.1/", "https://printer.local/"];
const WEBHOOK_URLS = [...LOCAL, "https://hooks.turnpike.dev:8443/", "https://a.dev/\u0001", "a"];

const organization = (): string => `/orgs/${owner.orgId}`;
const member = (): string => `${organization()}/members/${owner.memberId}`;
const asOwner =
  (method: string, path: () => string): Call["send"] =>
  (body) =>
    send(`/v1${path()}`, { method, key: owner.key, body });
const asAdmin =
  (method: string, path: () => string): Call["send"] =>
  (body) =>
    admin(method, path(), body);

const CALLS: Readonly<Record<string, Call>> = {
  "POST /v1/keys": {
    send: asOwner("POST", () => "/keys"),
    valid: () => ({ name: "x" }),
    invalid: {
      name: [undefined, "n".repeat(101), ...NAMES],
      rpm_limit: LIMITS,
      scope: ["local", "", ["global"]],
      ...KEY_TERMS,
    },
  },
  "POST /v1/keys/{id}/rotate": {
    send: (body) => {
      const headers = { "idempotency-key": crypto.randomUUID() };
      return send(`/v1/keys/${owner.keyId}/rotate`, { key: owner.key, body, headers });
    },
    valid: () => ({ overlap_seconds: 0 }),
    invalid: { overlap_seconds: [undefined, -1, 30 * 86_400 + 1, 0.5], key: ["mine"] },
  },
  "POST /v1/sessions by a key with limits": {
    send: (body) => send("/v1/sessions", { key: limited, body }),
    valid: () => ({}),
    invalid: {
      budget_dollars: [1.000001, -1],
      end_user: ["bob"],
      expires_in: [7200, 86_401, 0],
      rpm_limit: [101],
      "allowed_models[0]": [["smart"], ["no/such"]],
      "allowed_models[1]": [["sandbox/echo", "sandbox/*"]],
      origins: [[]],
      "origins[0]": ["https://app.example.com:*", "app.example.com", `${PAGE}/`, "*"].map((one) => [
        one,
      ]),
      "origins[1]": [[PAGE, "https://*.example.com"]],
      scope: ["global"],
    },
  },
  "POST /v1/users": {
    send: asOwner("POST", () => "/users"),
    valid: () => ({ external_id: "u", alert_threshold: 0.1 }),
    invalid: {
      external_id: [undefined, null, 1, ...EXTERNAL_IDS, `a${"é".repeat(128)}`],
      alert_threshold: THRESHOLDS,
      ...QUOTAS,
    },
  },
  "PATCH /v1/users/{external_id}": {
    send: (body) => sendUser("u", owner.key, { method: "PATCH", body }),
    valid: () => ({ alert_threshold: 0.1 }),
    invalid: { alert_threshold: THRESHOLDS, ...QUOTAS },
  },
  "PATCH /v1/orgs/{org_id}": {
    send: asOwner("PATCH", organization),
    valid: () => ({ name: "never", slug: `never-${crypto.randomUUID().slice(0, 18)}` }),
    invalid: { name: ["x".repeat(201), ...NAMES], slug: SLUGS },
  },
  "PATCH /v1/orgs/{org_id}/settings": {
    send: asOwner("PATCH", () => `${organization()}/settings`),
    valid: () => ({ default_alert_threshold: 0.1 }),
    invalid: {
      default_user_monthly_quota_dollars: DOLLARS,
      default_user_daily_quota_dollars: DOLLARS,
      low_balance_threshold_dollars: DOLLARS,
      default_alert_threshold: THRESHOLDS,
      keep_responses_hours: [-1, 721, 1.5, "24", null],
      max_concurrent: CONCURRENT,
      tag_keys: [["a", "a"], ["a", "b", "c", "d", "e"], "team", null],
      "tag_keys[0]": [["a b"]],
      "auto_top_up.most_per_month_dollars": [topUp(10)],
      "auto_top_up.amount_dollars": [topUp(1e10)],
      ...BUDGETS,
    },
  },
  "POST /admin/v1/orgs": {
    send: asAdmin("POST", () => "/orgs"),
    valid: newOrganization,
    invalid: {
      name: [undefined, "x".repeat(201), ...NAMES],
      slug: SLUGS,
      owner_email: EMAILS,
      is_personal: ["yes"],
      key_scope: ["world"],
      rpm_limit: LIMITS,
    },
  },
  "PATCH /admin/v1/orgs/{id}": {
    send: asAdmin("PATCH", organization),
    valid: () => ({ name: "never", status: "suspended", rpm_limit: 7 }),
    invalid: {
      status: ["deleted", null, true],
      name: ["", null],
      slug: ["ab", "Abc"],
      rpm_limit: [0, -1, 1.5, "60", 2 ** 53],
    },
  },
  "POST /admin/v1/orgs/{id}/members": {
    send: asAdmin("POST", () => `${organization()}/members`),
    valid: () => ({ email: "a@example.com", role: "member" }),
    invalid: { email: [undefined, ...EMAILS], role: [undefined, ...ROLES] },
  },
  "PATCH /admin/v1/orgs/{id}/members/{member_id}": {
    send: asAdmin("PATCH", member),
    valid: () => ({ email: "a@example.com" }),
    invalid: { email: EMAILS, role: ROLES },
  },
  "POST /admin/v1/orgs/{id}/members/{member_id}/keys": {
    send: asAdmin("POST", () => `${member()}/keys`),
    valid: () => ({ name: "another" }),
    invalid: { name: [undefined, ...NAMES], rpm_limit: LIMITS, scope: ["local"] },
  },
  "PATCH /admin/v1/orgs/{id}/keys/{key_id}": {
    send: asAdmin("PATCH", () => `${organization()}/keys/${owner.keyId}`),
    valid: () => ({ name: "never", rpm_limit: 3 }),
    invalid: { name: ["x".repeat(101), ...NAMES], rpm_limit: [null, ...LIMITS] },
  },
  "POST /admin/v1/orgs/{id}/credits": {
    send: asAdmin("POST", () => `${organization()}/credits`),
    valid: () => ({ amount_micro: 5, reference: "r" }),
    invalid: {
      amount_micro: [0, 1.5, "5", null, 2 ** 53, 1e300],
      reference: ["", null, undefined, 7, "x".repeat(201)],
    },
  },
  "POST /admin/v1/orgs/{id}/reconcile": {
    send: asAdmin("POST", () => `${organization()}/reconcile`),
    valid: () => ({}),
    invalid: {
      after: ["x", "null", "{}", '{"tries":0,"run":{}}', 1],
      within_ms: [-1, 60_001, "1"],
      rows: [1],
    },
  },
  "POST /admin/v1/orgs/{id}/settle": {
    send: asAdmin("POST", () => `${organization()}/settle`),
    valid: () => ({ request_id: newId(), cost_micro: 30, generation: charged({}) }),
    get invalid(): InvalidValues {
      return {
        request_id: [undefined, "req_short", "chatcmpl-0VbbtnxZGhU4ZPPzjn5l243b", 7],
        org_id: [crypto.randomUUID()],
        cost_micro: [undefined, -1, 1.5, "30", null, 2 ** 53],
        generation: [undefined, null, "{}", []],
        "generation.model": charges({ model: "" }, { model: "m".repeat(257) }),
        "generation.provider": charges({ provider: null }),
        "generation.region": charges({ region: "mars" }),
        "generation.keyId": charges({ keyId: "key_1" }),
        "generation.streamed": charges({ streamed: 1 }),
        "generation.usage": charges(
          { usage: null },
          { usage: { ...usage, reasoning: usage.output + 1 } },
          { usage: { ...usage, input: 2 ** 53 - 1, cacheRead: 1 } },
        ),
        "generation.usage.input": charges({ usage: { ...usage, input: -1 } }),
        "generation.usage.output": charges({ usage: { ...usage, output: 1.5 } }),
        "generation.usage.cacheRead": charges({ usage: { ...usage, cacheRead: "1" } }),
        "generation.usage.cacheWrite": charges({ usage: { ...usage, cacheWrite: undefined } }),
        "generation.price.output": charges({ price: { ...price, output: null } }),
        "generation.price.cached": charges({ price: { ...price, cached: 0.5 } }),
        "generation.firstByteMs": charges({ firstByteMs: "1" }),
        "generation.durationMs": charges({ durationMs: null }),
        "generation.estimated": charges({ estimated: null }),
        "generation.finishReason": charges({ finishReason: 1 }),
      };
    },
  },
};

/** Its body is a line of the log, of which it uses only some fields. */
const IGNORES_UNKNOWN_FIELDS = new Set(["POST /admin/v1/orgs/{id}/settle"]);

describe("a body with an invalid field", () => {
  it.each(Object.entries(CALLS))(
    "returns 400 with the invalid field as param, and has no other effect: %s",
    async (name, call) => {
      const before = await readOrganizationData(owner);
      await expectInvalidValues(call.send, call.valid, call.invalid);
      if (!IGNORES_UNKNOWN_FIELDS.has(name)) {
        await expectInvalid(call.send, { ...call.valid(), quota: 3 }, "quota");
      }
      expect(await readOrganizationData(owner)).toEqual(before);
    },
  );
});

describe("a /v1/webhooks request with an invalid field", () => {
  useReceivers();

  it("returns 400 with the invalid field as param, and has no other effect", async () => {
    const { id } = await createWebhook("kept.turnpike.dev", { types: ["balance.low"] });
    const before = await readOrganizationData(account);
    const types = { "types[0]": [["no.such"]], "types[1]": [["balance.credited", "no.such"]] };
    const change = { url: LOCAL, types: [[]], ...types, enabled: ["no"], secret: ["whsec_mine"] };
    for (const [method, path, valid, invalid] of [
      ["POST", "", { url: "https://hooks.turnpike.dev/" }, { url: WEBHOOK_URLS, ...types }],
      ["PATCH", `/${id}`, { enabled: false }, change],
      ["POST", `/${id}/rotate`, {}, { overlap_seconds: [-1, 604_801] }],
      ["POST", `/${id}/replay`, {}, { since: [undefined, "yesterday"] }],
    ] as const) {
      await expectInvalidValues(
        (body) => callWebhooks(method, path, body),
        () => ({ ...valid }),
        invalid,
      );
    }
    expect(await readOrganizationData(account)).toEqual(before);
  });
});
