import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import { FaultFixture } from "./fault-fixture.ts";

/** "one two three" costs 29 input tokens at 1 and 3 output tokens at 2 micro-credits. */
let cost: number;
let fixture: FaultFixture;
let logged: string[];

beforeEach(async () => {
  logged = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void logged.push(line));
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  fixture = await new FaultFixture().open();
  const whole = await fixture.ask("sandbox/echo", false);
  cost = Number(whole.headers.get("x-cost-micro"));
  if (!(cost > 0)) throw new Error("a completion costs nothing");
  for (const method of Object.keys(fixture.calls)) fixture.calls[method] = [];
  // Pauses end immediately and advance the clock.
  vi.spyOn(scheduler, "wait").mockImplementation(async (ms) => {
    fixture.env.CLOCK_OFFSET_MS = String(Number(fixture.env.CLOCK_OFFSET_MS) + ms);
  });
});

const down = (): never => {
  throw new Error("D1 is down");
};
const eventually = (seen: () => Promise<void>): Promise<void> =>
  vi.waitFor(seen, { timeout: 100_000, interval: 5 });
const events = (name: string): Record<string, unknown>[] =>
  logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === name);
const codeOf = (text: string): unknown =>
  (JSON.parse(text) as { error: { code: unknown } }).error.code;

describe("a hold whose confirmation is lost", () => {
  it("causes a retry with the same ID, and results in one hold and one charge", async () => {
    fixture.faults["hold"] = ["lost", "ok"];
    expect((await fixture.ask("sandbox/echo", false)).status).toBe(200);
    const [first, second] = fixture.calls["hold"] ?? [];
    expect(second).toEqual(first);
    expect(await fixture.paid()).toEqual([-cost, -cost]);
    expect((await fixture.balance()).openHolds).toBe(0);
  });

  it.each([
    ["the retry fails too", ["lost", "down"], "storage_unavailable"],
    ["the retry meets an overloaded wallet", ["lost", "overloaded"], "storage_unavailable"],
    ["the retry meets a wallet that can't be read", ["lost", "unreadable"], "storage_unavailable"],
  ] as const)("returns 503 and is released through the outbox: %s", async (_, faults, code) => {
    fixture.faults["hold"] = faults;
    const answer = await fixture.ask("sandbox/echo", true);
    expect([answer.status, codeOf(answer.text)]).toEqual([503, code]);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(fixture.count("hold")).toBe(2);
    expect(fixture.calls["enqueue"]).toMatchObject([[[{ kind: "void", orgId: fixture.orgId }]]]);
    await eventually(async () => expect((await fixture.balance()).openHolds).toBe(0));
    expect(await fixture.paid()).toEqual([-cost]);
  });

  it("isn't placed if the first attempt arrives after the retry was rejected", async () => {
    fixture.faults["hold"] = ["down", "ok"];
    // The warm-up used the first faults.
    await env.WALLET.getByName(fixture.orgId).configure({ rpmLimit: 1 });
    const answer = await fixture.ask("sandbox/echo", true);
    expect([answer.status, fixture.count("hold")]).toEqual([429, 2]);
    expect(fixture.calls["enqueue"]).toMatchObject([[[{ kind: "void", orgId: fixture.orgId }]]]);
    const wallet = env.WALLET.getByName(fixture.orgId);
    const [keyHash, request] = (fixture.calls["hold"]?.[0] ?? []) as [string, HoldRequest];
    await eventually(async () => {
      await wallet.configure({ rpmLimit: null });
      // the first attempt, which arrives late
      const late = await wallet.admitAndHold(keyHash, request);
      expect(late).toMatchObject({ value: { held: { failure: { kind: "overloaded" } } } });
    });
    expect((await fixture.balance()).openHolds).toBe(0);
  });

  it("causes no retry and no outbox message if the wallet can't be read", async () => {
    fixture.faults["hold"] = ["unreadable"];
    const answer = await fixture.ask("sandbox/echo", false);
    expect([answer.status, codeOf(answer.text)]).toEqual([503, "storage_unavailable"]);
    expect([fixture.count("hold"), fixture.count("enqueue")]).toEqual([1, 0]);
  });

  it("causes no retry and no outbox message if the wallet is overloaded", async () => {
    fixture.faults["hold"] = ["overloaded"];
    const answer = await fixture.ask("sandbox/echo", false);
    expect([answer.status, codeOf(answer.text)]).toEqual([503, "overloaded"]);
    expect([fixture.count("hold"), fixture.count("enqueue")]).toEqual([1, 0]);
  });
});

describe.each([false, true])("a charge that the wallet doesn't accept (stream %s)", (stream) => {
  it.each(["down", "lost"] as const)(
    "enters the outbox before the client gets the last byte, and counts once: %s",
    async (fault) => {
      fixture.faults["settle"] = [fault];
      const answer = await fixture.ask("sandbox/echo", stream);
      expect(answer.status).toBe(200);
      expect(answer.text).toMatch(stream ? /data: \[DONE\]\n\n$/ : /"content":"one two three"/);
      expect(answer.headers.get("x-cost-micro")).toBe(stream ? null : String(cost));
      expect([fixture.count("settle"), fixture.count("enqueue")]).toEqual([4, 1]);
      await eventually(async () => expect((await fixture.balance()).openHolds).toBe(0));
      expect(await fixture.paid()).toEqual([-cost, -cost]);
    },
  );

  it("enters the outbox after one call to an overloaded wallet", async () => {
    fixture.faults["settle"] = ["overloaded"];
    expect((await fixture.ask("sandbox/echo", stream)).status).toBe(200);
    expect([fixture.count("settle"), fixture.count("enqueue")]).toEqual([1, 1]);
    await eventually(async () => expect(await fixture.paid()).toEqual([-cost, -cost]));
  });
});

describe("a charge whose outcome is unknown at both wallet and outbox", () => {
  describe.each([false, true])("a request with stream %s", (stream) => {
    it.each([
      ["lost", "lost"],
      ["lost", "down"],
      ["down", "lost"],
      ["lost", "overloaded"],
      ["overloaded", "lost"],
    ] as const)(
      "counts once, and the request completes, with the wallet %s and the outbox %s",
      async (settle, enqueue) => {
        fixture.faults["settle"] = [settle];
        fixture.faults["enqueue"] = [enqueue];
        const answer = await fixture.ask("sandbox/echo", stream);
        expect(answer.status).toBe(200);
        expect(answer.text).toMatch(stream ? /data: \[DONE\]\n\n$/ : /"content":"one two three"/);
        expect(answer.headers.get("x-cost-micro")).toBe(stream ? null : String(cost));
        await eventually(async () => expect((await fixture.balance()).openHolds).toBe(0));
        expect(await fixture.paid()).toEqual([-cost, -cost]);
      },
    );
  });

  it.each([false, true])(
    "counts once although calls are lost, unreadable or rejected as overloaded, and the request completes (stream %s)",
    async (stream) => {
      fixture.faults["settle"] = ["lost", "unreadable"];
      fixture.faults["enqueue"] = ["overloaded"];
      const answer = await fixture.ask("sandbox/echo", stream);
      expect(answer.status).toBe(200);
      expect(answer.text).toMatch(stream ? /data: \[DONE\]\n\n$/ : /"content":"one two three"/);
      expect(await fixture.paid()).toEqual([-cost, -cost]);
    },
  );

  it("causes an uncharged 503 for a JSON request if wallet and outbox are overloaded", async () => {
    fixture.faults["settle"] = ["overloaded"];
    fixture.faults["enqueue"] = ["overloaded"];
    const answer = await fixture.ask("sandbox/echo", false);
    expect([answer.status, codeOf(answer.text)]).toEqual([503, "storage_unavailable"]);
    expect(answer.text).not.toContain("one two");
    expect(answer.headers.get("x-cost-micro")).toBeNull();
    expect([fixture.count("settle"), fixture.count("enqueue")]).toEqual([1, 1]);
    expect(await fixture.paid()).toEqual([-cost]);
    expect(events("settlement_unsaved")).toEqual([]);
  });
});

describe.each([false, true])("a charge while wallet and outbox are down (stream %s)", (stream) => {
  beforeEach(() => {
    fixture.faults["settle"] = ["down"];
    fixture.faults["enqueue"] = ["down"];
  });

  it("leaves the response unchanged, is retried for 28 s, and is then logged", async () => {
    const startedMs = Number(fixture.env.CLOCK_OFFSET_MS);
    const answer = await fixture.ask("sandbox/echo", stream);
    expect(answer.text).toMatch(stream ? /data: \[DONE\]\n\n$/ : /"content":"one two three"/);
    expect(fixture.count("settle")).toBeGreaterThan(20);
    expect(Number(fixture.env.CLOCK_OFFSET_MS) - startedMs).toBeLessThan(30_000);
    expect(events("settlement_unsaved")).toMatchObject([
      {
        request_id: answer.headers.get("x-request-id"),
        org_id: fixture.orgId,
        cost_micro: cost,
        generation: { usage: { output: 3 }, model: "sandbox/echo" },
      },
    ]);
    expect(await fixture.paid()).toEqual([-cost]);
  });

  it("counts once, without a log line, when the wallet or the outbox recovers", async () => {
    fixture.faults["enqueue"] = ["down", "down", "down", "ok"];
    await fixture.ask("sandbox/echo", stream);
    expect(fixture.count("enqueue")).toBe(4);
    await eventually(async () => expect(await fixture.paid()).toEqual([-cost, -cost]));
    expect(events("settlement_unsaved")).toEqual([]);
  });
});

describe("a release that the wallet doesn't accept", () => {
  it.each([
    ["sandbox/status-500", false],
    ["sandbox/cut", true],
  ])("reaches the wallet through the outbox once: %s", async (model, stream) => {
    fixture.faults["void"] = ["down"];
    const answer = await fixture.ask(model, stream);
    expect(answer.text).toContain("upstream_error");
    expect([fixture.count("void"), fixture.count("enqueue")]).toEqual([4, 1]);
    await eventually(async () => expect((await fixture.balance()).openHolds).toBe(0));
    expect(await fixture.paid()).toEqual([-cost]);
  });
});

it.each([
  ["the first call to the key's object fails", "whose", "down", "storage_unavailable"],
  ["the first call to the key's object fails", "whose", "overloaded", "overloaded"],
  ["the wallet fails for a new key", "admit", "down", "storage_unavailable"],
  ["the wallet fails for a new key", "admit", "overloaded", "overloaded"],
])(
  "a request gets a 503, never a 401, and holds nothing if %s (%s %s)",
  async (_, method, fault, code) => {
    const cold = await new FaultFixture().open(); // an isolate that has cached no key
    cold.faults[method] = [fault as "down" | "overloaded"];
    const answer = await cold.ask("sandbox/echo", false);
    expect([answer.status, codeOf(answer.text)]).toEqual([503, code]);
    expect(cold.count("hold")).toBe(0);
  },
);

it("requests complete and are charged while every D1 call fails", async () => {
  const real = env.DB;
  try {
    env.DB = { prepare: down, batch: down, exec: down } as unknown as D1Database;
    expect((await fixture.ask("sandbox/echo", false)).status).toBe(200);
    expect((await fixture.ask("sandbox/echo", true)).text).toContain("[DONE]");
    expect(await fixture.paid()).toEqual([-cost, -cost, -cost]);
  } finally {
    env.DB = real;
  }
});
