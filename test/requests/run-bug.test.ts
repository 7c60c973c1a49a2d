import { beforeEach, expect, it, vi } from "vitest";
import type { EventStream, Provider } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import type { Run, RunServices } from "../../src/models/requests/paid-request.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { asResponse, HOME, JSON_REPLY, runOf, USAGE } from "./run-fixture.ts";

let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  vi.spyOn(scheduler, "wait").mockImplementation((ms) => {
    nowMs += ms;
    return Promise.resolve();
  });
});

const BODY = {
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
};

const broken = (): never => {
  throw new Error("a bug");
};

/**
 * Returns the kinds of messages that a run in another region enqueues after a bug before or during
 * its response.
 */
async function queuedBy(bug: "answer" | "routes" | "body", isLost = false): Promise<string[]> {
  const queued: string[] = [];
  const body = bug === "body" ? { ...BODY, toJSON: broken } : BODY;
  const upstream: Provider = {
    id: "up",
    send: () => Promise.resolve({ kind: "json", body, usage: USAGE }),
  };
  const run: Run = {
    ...runOf(servicesOf(bug === "routes" ? broken : () => upstream, enqueue)),
    respond: broken,
  };
  const request = { ...run.request, stream: false, reply: JSON_REPLY };
  const done = runPaidRequest({ ...run, request });
  await expect(done).rejects.toThrow("a bug");
  return queued;

  async function enqueue(items: readonly OutcomeItem[]): Promise<void> {
    queued.push(...items.map(({ kind }) => kind));
    if (isLost) throw new Error("Network connection lost.");
  }
}

function servicesOf(
  provider: () => Provider,
  enqueue: (items: readonly OutcomeItem[]) => Promise<void>,
): Partial<RunServices> {
  return {
    now: () => nowMs,
    wallet: null,
    outbox: () => ({ enqueue }),
    providers: Object.assign(new Map<string, Provider>(), { get: provider }),
    health: new RouteHealth(),
    keysNeedingCandidates: new Set<string>(),
    home: HOME,
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: 20,
      UPSTREAM_HEADERS_MS: 1000,
      UPSTREAM_FIRST_MS: 1000,
      UPSTREAM_IDLE_MS: 60_000,
      KEEP_ALIVE_MS: 15_000,
      READER_STUCK_MS: 30_000,
    } as RunServices["numbers"],
  };
}

it("a hold is released if a bug occurs before the provider call, and charged if it occurs during the response", async () => {
  expect(await queuedBy("routes")).toEqual(["void"]);
  expect(await queuedBy("body")).toEqual(["settle"]);
});

it("a bug that occurs once the charge may be stored releases no hold", async () => {
  expect(await queuedBy("answer")).toEqual(["settle"]);
  expect(new Set(await queuedBy("answer", true))).toEqual(new Set(["settle"]));
});

it("a stream that fails because of a bug ends with an error event with the cost, and without [DONE]", async () => {
  const queued: string[] = [];
  const open = { choices: [{ index: 0, delta: { content: "hi" }, finish_reason: null }] };
  const batches = [open, { ...open, toJSON: broken }].map((chunk) => [
    { kind: "chunk", chunk } as const,
  ]);
  let cancelled = 0;
  const events: EventStream = {
    next: () => Promise.resolve(batches.shift() ?? null),
    cancel: () => void cancelled++,
  };
  const upstream: Provider = { id: "up", send: () => Promise.resolve({ kind: "stream", events }) };
  const answered = Promise.withResolvers<Response>();
  const enqueue = async (items: readonly OutcomeItem[]): Promise<void> => {
    queued.push(...items.map(({ kind }) => kind));
  };
  const run: Run = {
    ...runOf(servicesOf(() => upstream, enqueue)),
    respond: asResponse(answered.resolve),
  };
  const [text] = await Promise.all([
    answered.promise.then((response) => response.text()),
    expect(runPaidRequest(run)).rejects.toThrow("a bug"),
  ]);
  const [content, error, ...rest] = text.split("\n\n");
  expect(content).toContain('"content":"hi"');
  expect(JSON.parse(error?.slice("data: ".length) ?? "")).toMatchObject({
    error: {
      type: "api_error",
      message: expect.stringContaining("X-Request-Id") as string,
      generation_id: run.id,
      cost_micro: run.progress.charged,
    },
  });
  expect(rest).toEqual([""]);
  expect([queued, cancelled > 0]).toEqual([["settle"], true]);
  expect(run.progress.charged).toBeGreaterThan(0);
});
