import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Accounts, sendRequest, silenceLog } from "./send-request.ts";
import type { Answer } from "./send-request.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, mutatedBytes, mutations, describeValue } from "./mutate.ts";
import { CHATS, EMBEDDINGS } from "./seeds.ts";
import { validFigures } from "./stored-data.ts";

beforeAll(silenceLog);
afterAll(() => {
  vi.restoreAllMocks();
});

const MESSAGES = [{ role: "user", content: "Hello there, how are you?" }];
const STREAMED = { stream: true, stream_options: { include_usage: true } };
/** Models that fail immediately, each in its own way. */
const FAILING = [
  "cut",
  "error-mid",
  "error-first",
  "no-usage",
  "huge-usage",
  "status-408",
  "status-429",
  "status-500",
  "status-503",
  "echo-key-401",
  "html",
  "bad-json",
  "split-utf8",
];
const SEEDS: readonly object[] = [
  ...CHATS,
  ...CHATS.map((chat) => Object.assign({}, chat, STREAMED)),
  ...EMBEDDINGS,
  ...FAILING.flatMap((name) => [
    { model: `sandbox/${name}`, messages: MESSAGES },
    { model: `sandbox/${name}`, messages: MESSAGES, ...STREAMED },
  ]),
];
const input = fc.record({
  mutation: mutations(SEEDS.length),
  idempotency: fc.constantFrom(null, null, null, "one", "two"),
});

type Input = typeof input extends fc.Arbitrary<infer T> ? T : never;

function shownInput({ mutation, idempotency }: Input): string {
  return `${idempotency} ${describeValue(SEEDS, mutation)}`;
}

const accounts = new Accounts();
let known: { readonly of: string; readonly balance: number; readonly seq: number } | null = null;

/** Returns the cost that a response reports, or null. */
function reportedCost({ headers, text }: Answer): number | null {
  const header = headers.get("x-cost-micro");
  if (header !== null) return Number(header);
  const [, streamed] = /"cost_micro":(\d+)/.exec(text) ?? [];
  return streamed === undefined ? null : Number(streamed);
}

async function isExact({ mutation, idempotency }: Input): Promise<CheckResult> {
  const account = await accounts.next();
  const { orgId } = account;
  if (known?.of !== orgId) known = { of: orgId, ...(await validFigures(orgId)) };
  const answer = await sendRequest({
    method: "POST",
    path: "input" in at(SEEDS, mutation.seed) ? "/v1/embeddings" : "/v1/chat/completions",
    headers: [
      ["content-type", "application/json"],
      ["authorization", `Bearer ${account.key}`],
      ...(idempotency === null ? [] : [["idempotency-key", idempotency] as const]),
    ],
    body: mutatedBytes(SEEDS, mutation),
  });
  if (answer === null) throw new Error("it could not be sent");
  mustEqual(answer.headers.get("openai-organization"), orgId, "another organization");
  const before = known;
  const after = await validFigures(orgId);
  known = { of: orgId, ...after };
  if (answer.status !== 200) {
    mustEqual({ of: orgId, ...after }, before, "a refusal that is in the ledger");
    return "refused";
  }
  const charged = before.balance - after.balance;
  const reported = reportedCost(answer) ?? charged;
  mustHold(
    charged === reported && charged >= 0,
    "another charge than it says",
    charged,
    reported,
    answer.text,
  );
  return "accepted";
}

describe("a paid request with any body", () => {
  it(
    `leaves no open hold, and costs the reported amount or nothing, for ${runsOf("paid requests")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: input, show: shownInput, check: isExact };
      expect(await findFaults("paid requests", checking)).toBe("");
    },
  );
});
