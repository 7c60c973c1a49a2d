import { expect, it, describe } from "vitest";
import { selectChangedFields } from "../../src/console/browser/lib/form-fields.ts";
import {
  WEBHOOK_EVENT_TYPE_GROUPS,
  WEBHOOK_EVENT_TYPES,
} from "../../src/console/browser/lib/event-types.ts";
import type { Generation } from "../../src/console/browser/api/types.ts";
import { describeRequest } from "../../src/console/browser/ui/request-sentence.ts";
import { assignColors } from "../../src/console/browser/state/colors.ts";
import { labelFieldError } from "../../src/console/browser/lib/form-fields.ts";
import * as fc from "fast-check";
import { balanceCurve } from "../../src/console/browser/lib/balance-curve.ts";
import { DAY_MS, daysBetween, utcDay } from "../../src/console/browser/lib/time.ts";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { apiTypes } from "../../scripts/site/api-types.ts";
import { REMEDIES, findRemedyForFailedRequest } from "../../src/console/browser/lib/remedies.ts";

const KEY = { name: "Server", rpm_limit: 60, tpm_limit: 5000, allowed_models: ["sandbox/echo"] };

it("a form of the console sends only changed fields", () => {
  expect(selectChangedFields(KEY, { ...KEY, allowed_models: ["sandbox/echo"] })).toEqual({});
});

it("a form of the console sends null for a removed limit", () => {
  expect(selectChangedFields<object>(KEY, { ...KEY, tpm_limit: null })).toEqual({
    tpm_limit: null,
  });
});

it("the form of a webhook lists each event type in exactly one group", () => {
  const listed = WEBHOOK_EVENT_TYPE_GROUPS.flatMap(([, types]) => types.map(([type]) => type));
  expect(listed.toSorted()).toEqual(WEBHOOK_EVENT_TYPES.map(([type]) => type).toSorted());
  const named = new Map(
    WEBHOOK_EVENT_TYPE_GROUPS.map(([title, types]) => [title, types.map(([type]) => type)]),
  );
  expect(named.get("Budgets, quotas and pauses")).toContain("key.budget_reached");
  expect(named.get("Organization and people")).toContain("settings.changed");
  for (const [, types] of WEBHOOK_EVENT_TYPE_GROUPS) expect(types.length).toBeGreaterThan(0);
});

const request = (fields: Partial<Generation>): Generation =>
  ({ error: null, cost_micro: 0, held_micro: 0, ...fields }) as Generation;

it("the page of a failed request without a stored error states that the cause wasn't recorded", () => {
  expect(describeRequest(request({ status: "voided" }))).toBe(
    "Failed. The cause wasn't recorded. Nothing was charged.",
  );
  expect(describeRequest(request({ status: "settled", cost_micro: 12 }))).toBe(
    "Succeeded. $0.000012 was charged.",
  );
});

const NAMES = ["openai/gpt-6-sol", "anthropic/claude-haiku-5.5", "sandbox/echo", "mistral/small"];

it("a name has one color in all charts, and no two names of a chart share a color", () => {
  for (const name of NAMES) {
    expect(assignColors([name, "other"])(name)).toBe(assignColors([name, ...NAMES])(name));
  }
  const many = Array.from({ length: 12 }, (_, i) => `model-${i}`);
  const of = assignColors([...many, "other", null]);
  const slots = many.map((name) => of(name)).filter((slot) => slot !== null);
  expect(new Set(slots).size).toBe(6);
  expect(slots).toHaveLength(6);
  expect(of("other")).toBeNull();
});

it.each([
  ["url must begin with https://.", "url", "Address", "Address must begin with https://."],
  [
    "allowed_models[0]: no model here is named 'gpt'. Use IDs or aliases from GET /v1/models, or author/*.",
    "allowed_models[0]",
    "Models",
    "Models: no model here is named 'gpt'. Use IDs or aliases from the Models page, or author/*.",
  ],
  ["alert_at must be at most 1.", "alert_at", "Alert [% of the limit]", "Alert must be at most 1."],
  ["identity is unknown.", "id", "Name", "identity is unknown."],
])("a form shows the API error '%s' with the name of the field", (message, param, label, shown) => {
  expect(labelFieldError(message, param, label)).toBe(shown);
});

const START = Date.parse("2028-02-01T00:00:00Z");

// the period includes a leap day
const days = daysBetween(utcDay(START), utcDay(START + 59 * DAY_MS));

it("the balance curve shows each day's closing balance, whatever the order of the changes", () => {
  const moved = fc.array(
    fc.record({ day: fc.constantFrom(...days), micros: fc.integer({ min: -1e9, max: 1e9 }) }),
  );
  fc.assert(
    fc.property(moved, fc.integer({ min: 0, max: 1e12 }), (rows, before) => {
      const now = before + rows.reduce((sum, { micros }) => sum + micros, 0);
      const curve = balanceCurve(now, rows, days);
      const ends = days.map((day) =>
        rows.reduce((sum, row) => (row.day <= day ? sum + row.micros : sum), before),
      );
      expect(curve).toEqual(ends);
    }),
  );
});

const CONSOLE = path.join(import.meta.dirname, "../../src/console/browser");

/**
 * Files that define how a read is displayed: its value, placeholder, age, and failure with a retry.
 */
const OWN = new Set(["state/reads.ts", "ui/states.tsx", "ui/pages.ts"]);

/** The console's source files by path. */
const SOURCES = readdirSync(CONSOLE, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && file !== "api/types.ts")
  .map((file) => [file, readFileSync(path.join(CONSOLE, file), "utf8")] as const);

/** Matches code that uses only the last value of a read. */
const BARE = /\.latest\b|\blatest\s*[,}:]/;

describe("a console component that reads from the API", () => {
  it.each(SOURCES.filter(([file]) => !OWN.has(file)))(
    "displays API values only through the components Shown or Inline: %s",
    (_file, text) => {
      expect(text.split("\n").filter((line) => BARE.test(line))).toEqual([]);
    },
  );

  it("reserves space for secondary data, so that the page doesn't move when the data arrives", () => {
    const drawn = SOURCES.flatMap(([file, text]) =>
      [...text.matchAll(/\{beside\([^)]*\)[^}]*&&/g)].map(([found]) => `${file}: ${found}`),
    );
    expect(drawn).toEqual([]);
  });

  it("fails this check if the component displays an API value directly", () => {
    expect(BARE.test("const rows = useRead(x).latest?.rows")).toBe(true);
    expect(BARE.test("const { latest, at } = useRead(x)")).toBe(true);
    expect(BARE.test("the latest of them")).toBe(false);
  });
});

const schema = (of: object) => ({ content: { "application/json": { schema: of } } });

const DOCUMENT = {
  paths: {
    "/v1/things/{id}": {
      get: {
        parameters: [
          { name: "id", in: "path", schema: { type: "string" } },
          { name: "limit", in: "query", schema: { type: "integer" } },
        ],
        responses: { 200: schema({ $ref: "#/components/schemas/Thing" }), 404: schema({}) },
      },
      patch: {
        requestBody: schema({ type: "object", properties: { name: { type: "string" } } }),
        responses: { 200: schema({ $ref: "#/components/schemas/Thing" }) },
      },
    },
  },
  components: {
    schemas: {
      Thing: {
        type: "object",
        required: ["id", "kinds"],
        properties: {
          id: { type: ["string", "null"] },
          kinds: { type: "array", items: { enum: ["a", "b"] } },
          "odd-name": { anyOf: [{ const: true }, { type: "null" }] },
          prices: { type: "object", additionalProperties: { type: "number" } },
        },
      },
    },
  },
};

it("the generator of API types converts an OpenAPI document's schemas and operations", () => {
  expect(apiTypes(JSON.stringify(DOCUMENT)).split("\n").slice(1)).toEqual([
    'export type Thing = { id: string | null; kinds: readonly ("a" | "b")[]; "odd-name"?: true | null; prices?: { [name: string]: number } };',
    "export type Calls = {",
    '  "GET /v1/things/{id}": { query: { limit?: number }; body: undefined; answer: Thing };',
    '  "PATCH /v1/things/{id}": { query: {  }; body: { name?: string }; answer: Thing };',
    "};",
    "",
  ]);
});

/** Codes that only programs receive, or whose message states the remedy. */
const WITHOUT = new Set([
  "invalid_value",
  "context_length_exceeded",
  "content_filter",
  "service_unavailable",
]);

it("the console has a remedy for each documented error about a conflict or a limit", () => {
  const docs = readFileSync("docs/errors.md", "utf8");
  const codes = docs.split(/^#+ /m).flatMap((section) => {
    const [heading = "", ...lines] = section.split("\n");
    const isOne = /^(?:402|403|409|429)\b/.test(lines.join("\n").trim());
    return isOne ? [...heading.matchAll(/[a-z_]+/g)].map(([code]) => code) : [];
  });
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((code) => !WITHOUT.has(code) && REMEDIES[code] === undefined)).toEqual([]);
});

it("the console shows different remedies for different conflicts", () => {
  const texts = Object.values(REMEDIES).map(([text, action]) => `${text} ${action?.[0] ?? ""}`);
  expect(new Set(texts).size).toBeGreaterThan(0.8 * texts.length);
  expect(findRemedyForFailedRequest({ status: 409, code: "last_owner" })).not.toEqual(
    findRemedyForFailedRequest({ status: 409, code: "has_balance" }),
  );
});

it.each([
  ["end_user_quota_exceeded", "", "Raise the quota of ann", ["end-users", "ann"]],
  ["paused", "New requests of this end user are paused.", "Resume ann", ["end-users", "ann"]],
  ["paused", "New requests of this API key are paused.", "Resume the key", ["keys", "key_1"]],
  ["key_budget_exceeded", "", "Open the key", ["keys", "key_1"]],
  ["model_not_allowed", "", "Open the key", ["keys", "key_1"]],
])(
  "the remedy for the error %s (%s) has the link '%s' to the object to change",
  (code, message, text, hash) => {
    const cause = { status: 403, code, message, keyId: "key_1", externalId: "ann" };
    const [, action] = findRemedyForFailedRequest(cause);
    expect(action?.[0]).toBe(text);
    expect(action?.[1][0]).toEqual(hash);
  },
);

it("the remedy for a paused organization or member links to all pauses", () => {
  for (const owner of ["this organization", "this API key's member"]) {
    const message = `New requests of ${owner} are paused.`;
    const cause = { status: 403, code: "paused", message, keyId: "key_1", externalId: "ann" };
    expect(findRemedyForFailedRequest(cause)[1]?.[1]).toEqual([["settings"]]);
  }
});
