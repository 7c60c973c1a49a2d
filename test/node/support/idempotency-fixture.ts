import assert from "node:assert/strict";
import { startMockProvider } from "../../fixtures/openai-mock.ts";
import type { MockProvider } from "../../fixtures/openai-mock.ts";
import { sumOf } from "./account.ts";
import type { Account } from "./account.ts";
import { startPersistentRegion } from "./two-regions.ts";
import type { PersistentRegion } from "./two-regions.ts";

export const CREDITS = 1_000_000;
/** A completion of the scripted provider. */
export const BODY = {
  model: "local/chat",
  messages: [{ role: "user" as const, content: "pay for this once" }],
};

/** The provider's behavior for a request: fail, or respond after the promise. */
type Step = "fail" | Promise<void>;

export type IdempotencyFixture = {
  readonly kept: PersistentRegion;
  readonly mock: MockProvider;
  /** Sets the behavior for the next requests in order. Later requests succeed. */
  readonly next: (...steps: readonly Step[]) => void;
  readonly stop: () => Promise<void>;
};

/** Starts a region with a provider of one model that fails and waits on request. */
export async function startIdempotencyFixture(): Promise<IdempotencyFixture> {
  let steps: Step[] = [];
  const mock = await startMockProvider();
  mock.script(async (_, response) => {
    const step = steps.shift();
    if (step !== "fail") {
      await step;
      return false;
    }
    response.writeHead(500).end();
    return true;
  });
  const kept = await startPersistentRegion({
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
    next: (...nextSteps) => (steps = [...nextSteps]),
    stop: async () => {
      await kept.stop();
      await mock.close();
    },
  };
}

type Seen = { readonly status: number; readonly code: string; readonly generationId: string };

/** Sends one request. `generationId` is its generation, or the generation that its rejection refers to. */
export async function sendPaidRequest(
  account: Account,
  headers: Readonly<Record<string, string>>,
  body: object = BODY,
): Promise<Seen> {
  const response = await account.call("/chat/completions", body, headers);
  const text = await response.text();
  const own = response.headers.get("x-request-id") ?? "";
  if (response.ok) return { status: response.status, code: "", generationId: own };
  const { error } = JSON.parse(text) as { error: { code: string; generation_id?: string } };
  return { status: response.status, code: error.code, generationId: error.generation_id ?? "" };
}

/** Waits until nothing is held. Returns the charged generations. */
export async function charged(account: Account): Promise<(string | null)[]> {
  const balance = await account.resolved();
  const rows = await account.ledger();
  assert.equal(balance.credits_micro, sumOf(rows));
  assert.deepEqual(await account.differences(), []);
  const paid = rows.filter((row) => row.kind === "usage");
  assert.ok(paid.every((row) => row.amount_micro < 0));
  return paid.map((row) => row.generation_id);
}
