import { describe, expect, it } from "vitest";
import { buildCatalog } from "../../src/models/catalog/catalog.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { parseAndBound } from "../fixtures/bound-request.ts";
import {
  authorizeRequestToJson,
  parseAuthorizeResponse,
  parseAuthorizeRequest,
} from "../../src/models/requests/authorize.ts";
import {
  forwardedRequestToJson,
  parseForwardedResponse,
  parseForwardedRequest,
} from "../../src/accounts/keys/forward-format.ts";
import {
  parsePeerItems,
  outcomeFromJson,
  outcomeToJson,
  deliveryResultFromJson,
  deliveryResultToJson,
  revocationFromJson,
  revocationToJson,
} from "../../src/regions/outbox-format.ts";
import { parseJson } from "../../src/shared/exact-json.ts";
import { parseJsonBytes } from "../../src/shared/http/read-json.ts";
import { BINDINGS } from "./bindings.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, bodiesOf, mutatedText, mutations } from "./mutate.ts";
import type { Mutation } from "./mutate.ts";
import * as seeds from "./seeds.ts";

/**
 * A parser of the other region's messages. Returns the parsed value in its wire format, or null for
 * an invalid message.
 */
type Reader = { readonly good: readonly object[]; readonly read: (body: object) => object | null };

function written<T>(read: T | null, write: (value: T) => object): object | null {
  return read === null ? null : write(read);
}

const READERS: readonly Reader[] = [
  {
    good: seeds.AUTHORIZE,
    read: (body) =>
      written(parseAuthorizeRequest(body), (one) => authorizeRequestToJson(one as never)),
  },
  {
    good: seeds.FORWARDS,
    read: (body) => written(parseForwardedRequest(body), forwardedRequestToJson),
  },
  {
    good: seeds.FORWARD_ANSWERS,
    read: (body) => written(parseForwardedResponse(body), (one) => ({ ok: true, ...one })),
  },
  {
    good: seeds.AUTHORIZE_ANSWERS,
    read: (body) =>
      written(parseAuthorizeResponse(body), (one) => {
        if (one.unanswered) return { ok: false, failure: one.failure, may_hold: true };
        const { result } = one;
        return result.ok ? { ok: true, ...result.value } : result;
      }),
  },
  { good: seeds.OUTCOMES, read: (body) => written(outcomeFromJson(body, "us"), outcomeToJson) },
  { good: seeds.REVOCATIONS, read: (body) => written(revocationFromJson(body), revocationToJson) },
  {
    good: [{ v: 1, items: seeds.OUTCOMES }],
    read: (body) => {
      const items = parsePeerItems(body);
      return items.ok ? { items: items.value } : null;
    },
  },
  {
    good: [
      { hold_id: "req_1", result: "delivered" },
      { hold_id: "req_2", result: "refused", reason: "voided" },
    ],
    read: (body) => {
      const answer = deliveryResultFromJson("hold_id", body);
      return answer === null
        ? null
        : deliveryResultToJson("hold_id", { hold_id: answer.id }, answer.delivery);
    },
  },
];
const MESSAGES = READERS.flatMap(({ good, read }) => good.map((seed) => ({ seed, read })));

function readTwice(bytes: Uint8Array, seed: number): CheckResult {
  const body = parseJsonBytes(bytes);
  const { read } = at(MESSAGES, seed);
  const first = body.ok ? read(body.value) : null;
  if (first === null) return "refused";
  mustEqual(read(parseJson(JSON.stringify(first)) as object), first, "another message");
  return "accepted";
}

describe("a generated message between regions", () => {
  it(
    `stays unchanged after writing and reading, or is rejected, for ${runsOf("messages between regions")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const good = MESSAGES.map(({ seed }) => seed);
      expect(await findFaults("messages between regions", bodiesOf(good, readTwice))).toBe("");
    },
  );
});

const MODEL = {
  id: "own/model",
  kind: "chat",
  context: 128_000,
  max_output: 4096,
  abilities: ["tools", "vision"],
  price: { input: 150_000, cached: 75_000, cache_write: 0, output: 600_000 },
  routes: [{ provider: "own", upstream_id: "m" }],
};
const VARIABLES: readonly object[] = [
  { MODELS: [MODEL] },
  { MODELS: [MODEL, { ...MODEL, id: "own/embed", kind: "embeddings", abilities: ["dimensions"] }] },
  {
    PROVIDERS: [
      {
        id: "own",
        base_url: "https://own.example/v1",
        profile: "generic",
        secret: "OWN_KEY",
        regions: ["eu"],
      },
    ],
  },
  { ALIASES: { smart: "own/model", fast: "sandbox/echo" } },
  { PEERS: [{ region: "us", url: "https://us.example" }] },
];
const DEAREST = {
  messages: [{ role: "user", content: "Hi" }],
  n: 128,
  max_tokens: Number.MAX_SAFE_INTEGER,
};

function variableOf(mutation: Mutation): [name: string, text: string] {
  const [name = "", seed] = Object.entries(at(VARIABLES, mutation.seed))[0] ?? [];
  return [name, mutatedText([seed], mutation)];
}

function shownVariable(mutation: Mutation): string {
  return variableOf(mutation).join("=");
}

const LIVE = ["sandbox", "own"].map((id) => ({ id, regions: ["eu"] as const }));

function isServed(mutation: Mutation): CheckResult {
  const [name, text] = variableOf(mutation);
  const parsed = parseConfig({ ...BINDINGS, [name]: text });
  if (!parsed.ok) {
    const { problems } = parsed;
    mustHold(
      problems.some(({ variable }) => variable === name),
      "it is not named",
      problems,
    );
    mustHold(!/[koti]{32}|secret-of/.test(JSON.stringify(problems)), "a secret", problems);
    return "refused";
  }
  const catalog = buildCatalog({ config: parsed.config, live: LIVE, at: 0 });
  for (const [id, { kind }] of catalog.models) {
    if (kind !== "chat") continue;
    mustHold(
      parseAndBound(chatEndpoint, { model: id, ...DEAREST }, catalog).ok,
      "it cannot be asked for",
      id,
    );
  }
  return "accepted";
}

describe("an operator's variable with a generated value", () => {
  it(
    `returns an error with the variable's name, or accepts the maximum request, for ${runsOf("operators' variables")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const inputs = mutations(VARIABLES.length);
      const checking = { inputs, show: shownVariable, check: isServed };
      expect(await findFaults("operators' variables", checking)).toBe("");
    },
  );
});
