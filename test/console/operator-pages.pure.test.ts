import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it, describe } from "vitest";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { describeOperatorCall } from "../../src/console/browser/lib/operator-acts.ts";
import * as fc from "fast-check";
import { findBlock } from "../../src/console/browser/lib/blocked.ts";
import { rewriteAmounts, dollarsToMicros } from "../../src/console/browser/lib/money.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { errorResponseOf } from "../../src/shared/http/failure-mapping.ts";
import { micros } from "../../src/shared/money.ts";

/** Operators' calls that only the CLI offers, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "GET /admin/v1/orgs/{id}/keys/{key_id}": "the list of keys has all of each",
  "POST /admin/v1/orgs/{id}/purchases/{purchase_id}/check": "the CLI asks for one purchase",
  "GET /admin/v1/orgs/{id}/alerts": "alerts are events, which are listed",
  "GET /admin/v1/lost-organizations": "restoring one is a command of the CLI, which lists them",
  "GET /admin/v1/orgs/{id}/pauses": "pauses are set with the CLI",
  "POST /admin/v1/orgs/{id}/pauses": "the same",
  "DELETE /admin/v1/orgs/{id}/pauses/{pause_id}": "the same",
  "GET /admin/v1/merchants": "merchants are set up with the CLI",
  "POST /admin/v1/merchants": "the same",
  "POST /admin/v1/merchants/{name}/rotate": "the same",
  "DELETE /admin/v1/merchants/{name}": "the same",
  "POST /admin/v1/orgs/{id}/settle": "takes a line of the log, which a terminal has",
};

const PAGES = path.join(import.meta.dirname, "../../src/console/browser/pages");

const SOURCE = readdirSync(PAGES)
  .map((name) => readFileSync(path.join(PAGES, name), "utf8"))
  .join("\n");

const CALLED = new Set(
  [...SOURCE.matchAll(/"([A-Z]+ \/admin\/v1[^"]*)"/g)].map(([, call]) => call),
);

/**
 * Calls for which a page checks the operator's role, either directly or in the last column of a
 * table of actions.
 */
const CHECKED = new Set(
  [
    ...SOURCE.matchAll(
      /(?:\b(?:may|canMakeCall)\(|\buseCanMakeCall\(\)\(|…", )"([A-Z]+ \/admin\/v1[^"]*)"/g,
    ),
  ].map(([, call]) => call),
);

it("the console has a button for each operator API call that changes data", () => {
  const changing = [...CALLED].filter((call) => !call?.startsWith("GET "));
  expect(changing.filter((call) => !CHECKED.has(call))).toEqual([]);
  expect(changing.length).toBeGreaterThan(20);
});

it("the console uses every operator API call, or lists the reason for an unused call", () => {
  const all = OPERATOR_ROUTES.map(
    ({ method, path: at }) => `${method} ${at.replaceAll(/:(\w+)/g, "{$1}")}`,
  );
  expect(all.filter((call) => !CALLED.has(call)).toSorted()).toEqual(
    Object.keys(ELSEWHERE).toSorted(),
  );
});

const REMOVE = "DELETE /prices/{price_id}";

const describeCall = (act: string, details: object, name: string | null = null): string =>
  describeOperatorCall({
    operator: "admin",
    act,
    organization: { id: "org", name: "Northwind Labs" },
    target_name: name,
    details: { ...details },
  });

it("the sentence for an operator's change contains amounts, names and reasons", () => {
  const refund = "POST /orgs/{id}/purchases/{purchase_id}/refund";
  const part = { amount_cents: 400, purchase_dollars: 25, reason: "requested_by_customer" };
  expect(describeCall(refund, part)).toBe(
    "admin refunded $4.00 of $25.00 to Northwind Labs: requested by customer.",
  );
  expect(describeCall(refund, { purchase_dollars: 25 })).toBe(
    "admin refunded the rest of $25.00 to Northwind Labs.",
  );
  expect(describeCall("PATCH /orgs/{id}", { status: "suspended", reason: "Unpaid invoice" })).toBe(
    "admin suspended Northwind Labs: Unpaid invoice.",
  );
  const policy = {
    allowed_models: null,
    allowed_providers: ["openai"],
    allowed_data_regions: null,
  };
  const limits = { rpm_limit: null, operator_policy: policy, other_fields: ["name"] };
  expect(describeCall("PATCH /orgs/{id}", limits)).toBe(
    "admin changed Northwind Labs: requests per 60 s none, operator policy providers openai, name.",
  );
  expect(describeCall("DELETE /orgs/{id}/keys/{key_id}", {}, "Server")).toBe(
    "admin revoked the key Server of Northwind Labs.",
  );
  expect(
    describeCall("POST /orgs/{id}/credits", { amount_micro: -2_000_000, reference: "typo" }),
  ).toBe("admin took $2.00 from Northwind Labs: typo.");
});

it("the console shows a sentence for an event without details that an earlier release stored", () => {
  expect(describeCall("PATCH /orgs/{id}", {})).toBe("admin changed Northwind Labs.");
  expect(describeCall("DELETE /orgs/{id}/keys/{key_id}", {})).toBe(
    "admin revoked a key of Northwind Labs.",
  );
  const removal = describeOperatorCall({
    operator: "admin",
    act: REMOVE,
    organization: null,
    details: {},
  });
  expect(removal).toBe("admin removed a price.");
});

const NOW = Date.parse("2026-11-27T12:00:00Z");

const dollars = fc.integer({ min: 0, max: 3 });

const quota = fc.option(dollars, { nil: null });

const keyBudget = fc.record({
  id: fc.constant("lim_1"),
  scope: fc.constant("end_user" as const),
  limit_dollars: dollars,
  usage: dollars,
  held: dollars,
  limit_remaining: dollars,
  window: fc.constantFrom("60m", "day", "total"),
  models: fc.constantFrom(null, ["sandbox/*"]),
  on_exceeded: fc.constant("reject" as const),
  alert_at: fc.constant(null),
  resets_at: fc.constantFrom(null, "2026-11-28T00:00:00.000Z"),
  counting_since: fc.constant("2026-11-01T00:00:00.000Z"),
});

const user = fc.record({
  external_id: fc.constant("ann"),
  daily_quota_dollars: quota,
  daily_spend_dollars: dollars,
  monthly_quota_dollars: quota,
  monthly_spend_dollars: dollars,
  budgets: fc.array(keyBudget, { maxLength: 2 }),
});

const pause = (subject: string) => ({
  id: "pau_1",
  scope: "end_user" as const,
  subject,
  reason: "Review",
  until: null,
  stop_running: false,
  source: "member" as const,
  created_by: { kind: "member" as const, id: "m" },
  created_at: "2026-11-27T00:00:00.000Z",
});

const isUsedUp = (spent: number, limit: number | null): boolean => limit !== null && spent >= limit;

describe("an end user in the console", () => {
  it("appears as blocked only if a quota or a budget for all models is used up", () => {
    fc.assert(
      fc.property(user, (one) => {
        const expected =
          isUsedUp(one.daily_spend_dollars, one.daily_quota_dollars) ||
          isUsedUp(one.monthly_spend_dollars, one.monthly_quota_dollars) ||
          one.budgets.some((of) => of.models === null && isUsedUp(of.usage, of.limit_dollars));
        expect(findBlock(one, [pause("bob")], NOW)?.state).toBe(expected ? "blocked" : undefined);
        expect(findBlock(one, [pause("ann")], NOW)).toMatchObject({
          state: "paused",
          why: "Review",
        });
      }),
    );
  });

  it.each([
    [1, 1, "until 1 Dec, 00:00 UTC", "the monthly quota is used up"],
    [1, 5, "until 28 Nov, 00:00 UTC", "the daily quota is used up"],
    [null, 0, "until the monthly quota is raised", "the monthly quota is used up"],
  ])(
    "appears as blocked with a daily quota of %s and a monthly quota of %s: %s",
    (daily, monthly, until, why) => {
      const spent = { external_id: "ann", daily_spend_dollars: 1, monthly_spend_dollars: 2 };
      const quotas = { daily_quota_dollars: daily, monthly_quota_dollars: monthly, budgets: [] };
      expect(findBlock({ ...spent, ...quotas }, [], NOW)).toEqual({ state: "blocked", until, why });
    },
  );
});

function failureOf(
  kind: string,
  amounts: readonly number[],
  { onlyHolds, month }: { readonly onlyHolds: boolean; readonly month: string },
): Failure {
  const resetsAt = Date.parse(`${month}-01T00:00:00Z`);
  const [whole = micros(0), rest = whole, required = whole, held = whole] = amounts.map(micros);
  const shortage = { leftMicro: rest, heldMicro: held, requiredMicro: required, onlyHolds };
  if (kind === "quota") {
    return { kind: "quota_exceeded", period: "month", quotaMicro: whole, resetsAt, ...shortage };
  }
  if (kind === "key") {
    const own = { period: "month", budgetMicro: whole, resetsAt } as const;
    return { kind: "key_budget_exceeded", ...own, ...shortage };
  }
  if (kind === "balance") return { kind: "balance_too_low", balanceMicro: whole, ...shortage };
  if (kind === "owed") return { kind: "payment_reversed", owedMicro: whole };
  const budget = { budgetId: "lim_1", unit: "dollars", window: "10m", scope: "key" } as const;
  const used = { limit: whole, left: rest, held, required, onlyHolds, resetsAt };
  return { kind: "budget_exceeded", ...budget, ...used };
}

describe("an error message with amounts in the console", () => {
  const amount = fc.integer({ min: 0, max: 10 ** 12 });
  const months = fc.constantFrom("2026-09", "2026-12");
  const kinds = fc.constantFrom("quota", "key", "budget", "balance", "owed");

  it("shows each amount exactly in dollars instead of micro-credits", () => {
    fc.assert(
      fc.property(
        kinds,
        fc.tuple(amount, amount, amount, amount),
        fc.record({ onlyHolds: fc.boolean(), month: months }),
        (kind, all, more) => {
          const { message } = errorResponseOf(failureOf(kind, all, more));
          const shown = rewriteAmounts(message);
          expect(shown).not.toMatch(/micro|T00:00|\d{4}-/);
          const amounts = (shown.match(/\$[\d.]*\d/g) ?? []).map((one) =>
            dollarsToMicros(Number(one.slice(1))),
          );
          expect(amounts.length).toBeGreaterThan(0);
          for (const one of amounts) expect(all).toContain(one);
          const others = shown.replaceAll(
            /\$[\d.]*\d|1 (?:Sept|Dec), 00:00 UTC|10 minutes|1s/g,
            "",
          );
          expect(others).not.toMatch(/\d/);
        },
      ),
    );
  });

  it("keeps an error message unchanged if the message contains no amounts", () => {
    const message = "The model 'gpt-5.4' does not exist. Please retry after 20s.";
    expect(rewriteAmounts(message)).toBe(message);
  });
});
