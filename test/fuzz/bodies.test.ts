import { describe, expect, it } from "vitest";
import type * as z from "zod/mini";
import { buildCatalog } from "../../src/models/catalog/catalog.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import { parseBody } from "../../src/shared/http/parse-body.ts";
import { parseJson } from "../../src/shared/exact-json.ts";
import { parseJsonBytes } from "../../src/shared/http/read-json.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import type { EndpointAdapter } from "../../src/models/core/endpoint-adapter.ts";
import { embeddingsEndpoint } from "../../src/models/endpoints/input-endpoints.ts";
import { messagesEndpoint } from "../../src/models/endpoints/messages.ts";
import { responsesEndpoint } from "../../src/models/endpoints/responses.ts";
import type { PaidRequest } from "../../src/models/requests/paid-request.ts";
import { parseAndBound } from "../fixtures/bound-request.ts";
import { keyChangeSchema, newKeySchema } from "../../src/accounts/keys/new-key.ts";
import type { Result } from "../../src/shared/failure.ts";
import { generationSchema } from "../../src/shared/generation.ts";
import {
  emailSchema,
  organizationChangeSchema,
} from "../../src/accounts/organizations/organization.ts";
import {
  nullableDollarsSchema,
  fractionSchema,
} from "../../src/money/wallet/routes/end-users.route.ts";
import { BINDINGS } from "./bindings.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, bodiesOf } from "./mutate.ts";
import { strictObject } from "./reference-json.ts";
import { checkRejection } from "./rejection.ts";
import * as seeds from "./seeds.ts";

const ALL: readonly object[] = Object.values(seeds).flat();
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses bytes with another parser. */
function strict(bytes: Uint8Array): object | undefined {
  try {
    return strictObject(utf8.decode(bytes));
  } catch (error) {
    if (error instanceof TypeError) return undefined; // the bytes aren't UTF-8
    throw error;
  }
}

function readTwice(bytes: Uint8Array): CheckResult | Promise<CheckResult> {
  const expected = strict(bytes);
  const read = parseJsonBytes(bytes);
  if (!read.ok) return checkRejection(read, expected === undefined);
  mustEqual(JSON.parse(JSON.stringify(read.value)), expected, "another value");
  return "accepted";
}

const parsed = parseConfig(BINDINGS);
if (!parsed.ok) throw new Error("the bindings are not valid");
const live = [
  { id: "sandbox", regions: ["eu", "us", "global"] as const },
  { id: "openai", regions: ["eu"] as const },
];
const catalog = buildCatalog({ config: parsed.config, live, at: 0 });

/**
 * Returns a check that a request stays the same with the same price if written and parsed again,
 * and that the price is exact.
 */
function priced(prepare: (body: object) => Result<PaidRequest>) {
  return (bytes: Uint8Array): CheckResult | Promise<CheckResult> => {
    const json = parseJsonBytes(bytes);
    const first = json.ok ? prepare(json.value) : json;
    if (!first.ok) return checkRejection(first);
    const { core, prompt, bounds, cap } = first.value;
    const { least, most } = bounds;
    mustHold(Number.isSafeInteger(least) && Number.isSafeInteger(most), "no whole micros", bounds);
    mustHold(least >= 0 && least <= most, "the least is not the least", bounds);
    mustHold(prompt.estimate <= prompt.bound && prompt.likely <= prompt.bound, "no bound", prompt);
    mustHold(cap === null || (cap.least > 0 && cap.least <= cap.whole), "a cap of nothing", cap);
    const second = prepare(parseJson(JSON.stringify(core?.body)) as object);
    mustEqual(second.ok && written(second.value), written(first.value), "another request");
    return "accepted";
  };
}

/**
 * Returns a check for other formats than chat: the converted request is valid at the chat endpoint,
 * at the same price.
 */
function converted(endpoint: EndpointAdapter) {
  return (bytes: Uint8Array): CheckResult | Promise<CheckResult> => {
    const json = parseJsonBytes(bytes);
    const first = json.ok ? parseAndBound(endpoint, json.value, catalog) : json;
    if (!first.ok) return checkRejection(first);
    const { core, native, bounds } = first.value;
    mustHold(
      native === null || JSON.stringify(native.body) !== undefined,
      "no native body",
      native,
    );
    const asChat = parseAndBound(
      chatEndpoint,
      JSON.parse(JSON.stringify(core?.body)) as object,
      catalog,
    );
    mustHold(asChat.ok, "no chat", core);
    mustEqual(asChat.ok && asChat.value.bounds, bounds, "another price");
    return "accepted";
  };
}

function written({ model, dropped: _dropped, ...request }: PaidRequest): string {
  return JSON.stringify([model.id, request]); // fields are dropped only once
}

/** The schemas of management bodies, each with valid bodies. */
const BODIES: readonly (readonly [z.core.$ZodType, readonly unknown[]])[] = [
  [newKeySchema, seeds.KEYS],
  [keyChangeSchema, seeds.KEY_CHANGES],
  [organizationChangeSchema, seeds.ORGANIZATION_CHANGES],
  [generationSchema, [seeds.GENERATION]],
];
const FIELDS: readonly (readonly [z.core.$ZodType, readonly unknown[]])[] = [
  [nullableDollarsSchema, [10.5, 0.000001, null, 0, 8.2]],
  [fractionSchema, [0.8, 0, 1]],
  [emailSchema, ["ada@example.com"]],
];
const CASES = [
  ...BODIES.flatMap(([schema, good]) => good.map((seed) => ({ schema, seed, isField: false }))),
  ...FIELDS.flatMap(([schema, good]) =>
    good.map((value) => ({ schema, seed: { value }, isField: true })),
  ),
];

function managed(bytes: Uint8Array, seed: number): CheckResult | Promise<CheckResult> {
  const { schema, isField } = at(CASES, seed);
  const json = parseJsonBytes(bytes);
  if (!json.ok) return checkRejection(json);
  const value: unknown = isField ? json.value["value"] : json.value;
  const first = parseBody(schema, value);
  if (!first.ok) return checkRejection(first, schema !== nullableDollarsSchema || !isAmount(value));
  if (schema === nullableDollarsSchema) return exact(value, first.value);
  const second = parseBody(schema, JSON.parse(JSON.stringify(first.value)));
  mustEqual(second.ok && second.value, first.value, "another value");
  return "accepted";
}

/**
 * Reports whether a value is null or a dollar amount of at most a billion with at most 6 decimals.
 */
function isAmount(value: unknown): boolean {
  if (typeof value !== "number") return value === null;
  return value >= 0 && value <= 1_000_000_000 && Number(value.toFixed(6)) === value;
}

/** Checks that dollars become micro-credits exactly: the decimal is shifted by six digits. */
function exact(dollars: unknown, amount: unknown): CheckResult {
  const shifted = dollars === null ? null : Number(Number(dollars).toFixed(6).replace(".", ""));
  mustEqual(amount, shifted, "another amount");
  mustHold(
    dollars === null || Number(dollars) === Number(amount) / 1_000_000,
    "not exact",
    dollars,
  );
  return "accepted";
}

describe("JSON in a request body", () => {
  it(
    `produces the same value in two parsers, or fails in both, for ${runsOf("json text")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      expect(await findFaults("json text", bodiesOf(ALL, readTwice))).toBe("");
    },
  );
});

describe("a paid request with a generated body", () => {
  it(
    `returns 400, or keeps its content and price when parsed again, for ${runsOf("chat bodies")} generated chat bodies`,
    { timeout: TIMEOUT_MS },
    async () => {
      const check = priced((body) => parseAndBound(chatEndpoint, body, catalog));
      expect(await findFaults("chat bodies", bodiesOf(seeds.CHATS, check))).toBe("");
    },
  );

  it(
    `returns 400, or keeps its content and price when parsed again, for ${runsOf("embeddings bodies")} generated embeddings bodies`,
    { timeout: TIMEOUT_MS },
    async () => {
      const check = priced((body) => parseAndBound(embeddingsEndpoint, body, catalog));
      expect(await findFaults("embeddings bodies", bodiesOf(seeds.EMBEDDINGS, check))).toBe("");
    },
  );
});

describe("a generated body of another protocol", () => {
  it(
    `returns 400, or costs the same as a chat completion, for ${runsOf("Messages bodies")} generated Messages bodies`,
    { timeout: TIMEOUT_MS },
    async () => {
      const check = converted(messagesEndpoint);
      expect(await findFaults("Messages bodies", bodiesOf(seeds.MESSAGES, check))).toBe("");
    },
  );

  it(
    `returns 400, or costs the same as a chat completion, for ${runsOf("Responses bodies")} generated Responses bodies`,
    { timeout: TIMEOUT_MS },
    async () => {
      const check = converted(responsesEndpoint);
      expect(await findFaults("Responses bodies", bodiesOf(seeds.RESPONSES, check))).toBe("");
    },
  );
});

describe("a generated body for a management endpoint", () => {
  it(
    `returns 400, or stays unchanged after writing and reading, for ${runsOf("other bodies")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const good = CASES.map(({ seed }) => seed);
      expect(await findFaults("other bodies", bodiesOf(good, managed))).toBe("");
    },
  );
});
