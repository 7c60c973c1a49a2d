import { beforeEach, describe, expect, it, vi } from "vitest";
import type { EventStream, JsonObject, StreamEvent } from "../../src/models/core/provider.ts";
import { sendJson, sendStream } from "../../src/models/requests/send-response.ts";
import { micros } from "../../src/shared/money.ts";
import { settleAndRespond } from "../../src/models/requests/settle.ts";
import type { Run, RunServices } from "../../src/models/requests/paid-request.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import {
  asResponse,
  HOME,
  JSON_REPLY,
  runOf,
  SERVING,
  STREAM_REPLY,
  USAGE,
} from "./run-fixture.ts";

/** In another region, the outbox is the only place for a charge. */
type Fault = "ok" | "lost" | "down" | "overloaded";

const BODY: JsonObject = {
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
};

let nowMs: number;
let logged: string[];
let kept: Map<string, OutcomeItem>;
let calls: number;
let costs: (string | null)[];

beforeEach(() => {
  nowMs = 0;
  logged = [];
  kept = new Map();
  calls = 0;
  costs = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void logged.push(line));
  vi.spyOn(scheduler, "wait").mockImplementation(async (ms) => void (nowMs += ms));
});

/**
 * Returns a faulty outbox: the faults of its calls in order. The last one applies to all later
 * calls.
 */
function outboxWith(faults: readonly Fault[]): RunServices["outbox"] {
  return () => ({
    enqueue: async (items) => {
      const fault = faults[Math.min(calls, faults.length - 1)];
      calls += 1;
      if (fault === "overloaded") throw Object.assign(new Error("too busy"), { overloaded: true });
      if (fault !== "down") for (const item of items) kept.set(`${item.kind} ${item.holdId}`, item);
      if (fault !== "ok") throw new Error("Network connection lost.");
    },
  });
}

/** Returns "answer" if the client got a response, or the kind of its failure. */
async function answered(
  faults: readonly Fault[],
  { user = null, granted = null }: { user?: string | null; granted?: number | null } = {},
): Promise<string[]> {
  const got: string[] = [];
  const { request, ...rest } = runOf({
    wallet: null,
    home: HOME,
    outbox: outboxWith(faults),
    now: () => nowMs,
  });
  const run: Run = {
    ...rest,
    request: { ...request, user },
    respond: (result) => {
      costs.push(result instanceof Response ? result.headers.get("x-cost-micro") : null);
      got.push(result instanceof Response ? "answer" : result.kind);
    },
  };
  if (granted !== null) run.progress.granted = micros(granted);
  const answer = { body: BODY, usage: USAGE };
  await settleAndRespond(run, sendJson(run, SERVING, { given: answer, reply: JSON_REPLY }));
  run.timers.close();
  return got;
}

/** Returns the text of a stream with these faults. */
async function streamed(faults: readonly Fault[]): Promise<string> {
  const texts: Promise<string>[] = [];
  const services = { wallet: null, home: HOME, outbox: outboxWith(faults), now: () => nowMs };
  const numbers = { UPSTREAM_IDLE_MS: 60_000 } as RunServices["numbers"];
  const run: Run = {
    ...runOf({ ...services, numbers }),
    respond: asResponse((response) => void texts.push(response.text())),
  };
  await settleAndRespond(
    run,
    await sendStream(run, SERVING, {
      given: { kind: "stream", events: eventsOf() },
      reply: STREAM_REPLY,
    }),
  );
  run.timers.close();
  return (await Promise.all(texts)).join();
}

function eventsOf(): EventStream {
  const end = { delta: { content: "hi" }, finish_reason: "stop" };
  const choices = [
    { index: 0, ...end },
    { index: 1, ...end },
  ];
  const batch: readonly StreamEvent[] = [
    { kind: "chunk", chunk: { choices } },
    { kind: "usage", usage: USAGE },
    { kind: "end" },
  ];
  return { next: () => Promise.resolve(batch), cancel: () => undefined };
}

const isUnsaved = (): boolean => logged.some((line) => line.includes('"settlement_unsaved"'));

describe("the charge of a JSON response in another region", () => {
  it.each([
    ["stored immediately", ["ok"], 1],
    ["lost, then stored", ["lost", "ok"], 2],
    ["stored after both calls of the first attempt", ["down", "down", "ok"], 3],
    ["rejected by an overloaded outbox after a lost call", ["down", "overloaded", "ok"], 3],
  ] as const)("enters the outbox once, without a log line: %s", async (_, faults, count) => {
    expect(await answered(faults)).toEqual(["answer"]);
    expect([...kept.keys()]).toEqual(["settle req_test"]);
    expect(calls).toBe(count);
    expect(isUnsaved()).toBe(false);
  });

  it.each([
    ["lost", 1],
    ["down", 0],
  ] as const)(
    "goes to the log, and the response is returned, if every call to the outbox fails (%s)",
    async (fault, count) => {
      expect(await answered([fault])).toEqual(["answer"]);
      expect(kept.size).toBe(count);
      expect(isUnsaved()).toBe(true);
      expect(nowMs).toBeLessThan(30_000);
    },
  );

  it("never exceeds the hold, in the response header or in the outbox", async () => {
    await answered(["ok"], { granted: 1_000_000 });
    await answered(["ok"], { granted: 5 });
    const [item] = kept.values();
    expect(item).toMatchObject({ kind: "settle", isCapped: true });
    expect(costs).toEqual([String(item?.cost), "5"]);
    expect(item?.cost).toBeGreaterThan(5);
  });

  it.each(["ok", "lost", "down"] as const)("contains no end user: %s", async (fault) => {
    await answered([fault], { user: "ann@example.com" });
    expect(JSON.stringify([...kept.values(), logged])).toContain("req_test");
    expect(JSON.stringify([...kept.values(), logged])).not.toContain("ann@");
  });

  it("disappears, and the client gets a 503, if an overloaded outbox rejects the charge", async () => {
    expect(await answered(["overloaded"])).toEqual(["storage_unavailable"]);
    expect([kept.size, calls]).toEqual([0, 1]);
    expect(isUnsaved()).toBe(false);
  });
});

describe("the charge of a stream in another region", () => {
  it.each([
    ["stored immediately", ["ok"], 1],
    ["lost, then stored", ["lost", "ok"], 2],
    ["stored after both calls of the first attempt", ["down", "down", "ok"], 3],
    ["rejected at first", ["overloaded", "ok"], 2],
  ] as const)(
    "reaches the outbox once, without a log line, and the stream ends normally: %s",
    async (_, faults, count) => {
      expect(await streamed(faults)).toMatch(/data: \[DONE\]\n\n$/);
      expect([...kept.keys()]).toEqual(["settle req_test"]);
      expect(calls).toBe(count);
      expect(isUnsaved()).toBe(false);
    },
  );

  it.each(["lost", "down", "overloaded"] as const)(
    "appears in the log, and the stream ends normally, if every call to the outbox fails (%s)",
    async (fault) => {
      expect(await streamed([fault])).toMatch(/data: \[DONE\]\n\n$/);
      expect(isUnsaved()).toBe(true);
    },
  );
});
