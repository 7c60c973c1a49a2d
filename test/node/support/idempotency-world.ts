import assert from "node:assert/strict";
import { startOpenAiMock } from "../../fixtures/openai-mock.ts";
import type { OpenAiMock } from "../../fixtures/openai-mock.ts";
import { sumOf } from "./account.ts";
import type { Account } from "./account.ts";
import { startKeptRegion } from "./two-regions.ts";
import type { KeptRegion } from "./two-regions.ts";

export const CREDITS = 1_000_000;
/** A completion of the scripted upstream. */
export const BODY = {
  model: "local/chat",
  messages: [{ role: "user" as const, content: "pay for this once" }],
};

/** What the upstream does with a request: fails it, or answers it when the promise has come. */
type Step = "fail" | Promise<void>;

export type IdempotencyWorld = {
  readonly kept: KeptRegion;
  readonly mock: OpenAiMock;
  /** What the upstream does with its next requests, in order; after that it answers. */
  readonly next: (...steps: readonly Step[]) => void;
  readonly stop: () => Promise<void>;
};

/** A region in front of an upstream of one model, that fails and waits as it is told. */
export async function startIdempotencyWorld(): Promise<IdempotencyWorld> {
  let steps: Step[] = [];
  const mock = await startOpenAiMock();
  mock.script(async (_, response) => {
    const step = steps.shift();
    if (step !== "fail") {
      await step;
      return false;
    }
    response.writeHead(500).end();
    return true;
  });
  const kept = await startKeptRegion({
    PROVIDERS: JSON.stringify([
      { id: "local", base_url: mock.url, profile: "generic", regions: ["eu"] },
    ]),
    MODELS: JSON.stringify([
      {
        id: "local/chat",
        kind: "chat",
        context: 8000,
        price: { input: 1_000_000, output: 2_000_000 },
        routes: [{ provider: "local", upstream_id: "chat" }],
      },
    ]),
  });
  return {
    kept,
    mock,
    next: (...told) => (steps = [...told]),
    stop: async () => {
      await kept.stop();
      await mock.close();
    },
  };
}

type Seen = { readonly status: number; readonly code: string; readonly made: string };

/** One request, read to its end; `made` is the generation that it made, or that its refusal names. */
export async function ask(
  account: Account,
  headers: Readonly<Record<string, string>>,
  body: object = BODY,
): Promise<Seen> {
  const response = await account.call("/chat/completions", body, headers);
  const text = await response.text();
  const own = response.headers.get("x-request-id") ?? "";
  if (response.ok) return { status: response.status, code: "", made: own };
  const { error } = JSON.parse(text) as { error: { code: string; generation_id?: string } };
  return { status: response.status, code: error.code, made: error.generation_id ?? "" };
}

/** Waits until nothing is held; the generations that were charged, each for more than nothing. */
export async function charged(account: Account): Promise<(string | null)[]> {
  const standing = await account.resolved();
  const rows = await account.ledger();
  assert.equal(standing.credits_micro, sumOf(rows));
  assert.deepEqual(await account.differences(), []);
  const paid = rows.filter((row) => row.kind === "usage");
  assert.ok(paid.every((row) => row.amount_micro < 0));
  return paid.map((row) => row.generation_id);
}
