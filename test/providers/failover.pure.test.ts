import { expect, it } from "vitest";
import { failover } from "../../src/providers/failover.ts";
import type { FailoverOptions } from "../../src/providers/failover.ts";
import type {
  EventStream,
  Provider,
  ProviderAnswer,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "../../src/providers/provider.ts";
import { RouteHealth } from "../../src/providers/route-health.ts";

const GOOD: ProviderAnswer = { kind: "json", body: { choices: [] }, usage: null };
const RETRY = failure({ kind: "retry", reason: "html" });
const RESET = failure({ kind: "retry", reason: "connection", again: true });
const BUSY = failure({ kind: "overloaded", reason: "429", retryAfterMs: 7000 });
const BAD_KEY = failure({ kind: "disabled", reason: "401" });
const REFUSED = failure({ kind: "refused", reason: "400", message: "no", param: "n", code: null });
const CHUNK: StreamEvent = { kind: "chunk", chunk: { choices: [] } };
const ERROR: StreamEvent = { kind: "error", failure: { kind: "retry", reason: "502" } };

function failure(what: ProviderFailure): ProviderAnswer {
  return { kind: "failure", failure: what };
}

type Asked = { readonly calls: string[]; readonly sent: ProviderCall[]; nowMs: number };

/** Candidates a, b, c ...: each gives its answers in turn, the last one for ever. */
function routes(...answers: (readonly (ProviderAnswer | Promise<ProviderAnswer>)[])[]) {
  const asked: Asked = { calls: [], sent: [], nowMs: 1_000_000 };
  const health = new RouteHealth();
  const candidates = answers.map((own, at) => {
    const id = "abcdef".charAt(at);
    let turn = 0;
    const provider: Provider = {
      id,
      async send(call) {
        asked.calls.push(id);
        asked.sent.push(call);
        return own[Math.min(turn++, own.length - 1)] ?? GOOD;
      },
    };
    return { provider, upstreamId: `${id}-model`, cap: 10 + at };
  });
  const run = (more: Partial<FailoverOptions> = {}, streamed = false) =>
    failover(
      candidates,
      { kind: "chat", body: {}, stream: streamed },
      {
        health,
        now: () => asked.nowMs,
        signal: new AbortController().signal,
        headersMs: 5000,
        firstMs: 5000,
        pauseMs: () => 0,
        ...more,
      },
    );
  return { asked, health, run };
}

/** A stream of batches; a batch that is an Error breaks the connection. */
function stream(...batches: (readonly StreamEvent[] | Error)[]) {
  const seen = { cancelled: 0 };
  const events: EventStream = {
    async next() {
      const batch = batches.shift();
      if (batch instanceof Error) throw batch;
      return batch ?? null;
    },
    cancel() {
      seen.cancelled++;
    },
  };
  return { answer: { kind: "stream", events } satisfies ProviderAnswer, seen };
}

const never = new Promise<never>(() => undefined);

it("the first route that answers serves, each is sent its own name and cap", async () => {
  const { asked, run } = routes([RETRY], [GOOD]);
  expect(await run()).toEqual({ ok: true, value: { index: 1, attempts: 2, answer: GOOD } });
  expect(asked.sent.map((call) => [call.upstreamId, call.cap])).toEqual([
    ["a-model", 10],
    ["b-model", 11],
  ]);
});

it("never more than three attempts in all, however many routes there are", async () => {
  const { asked, run } = routes([RESET], [RESET], [RESET], [GOOD]);
  expect(await run()).toMatchObject({ ok: false, failure: { kind: "upstream_error" } });
  expect(asked.calls).toEqual(["a", "b", "c"]);
});

it("only the last route is asked again, once, and only after a reset, a 408 or a 5xx", async () => {
  const two = routes([RESET], [RESET]);
  await two.run();
  expect(two.asked.calls).toEqual(["a", "b", "b"]);
  const one = routes([RESET, GOOD]);
  expect(await one.run()).toMatchObject({ ok: true, value: { attempts: 2 } });
  const twice = routes([RESET]);
  await twice.run();
  expect(twice.asked.calls).toEqual(["a", "a"]);
  for (const other of [RETRY, BUSY, BAD_KEY]) {
    const single = routes([other]);
    // oxlint-disable-next-line no-await-in-loop -- three cases of one rule
    await single.run();
    expect(single.asked.calls).toEqual(["a"]);
  }
});

it("a refusal of the request goes back at once, cleaned, without another attempt", async () => {
  const { asked, run } = routes([REFUSED], [GOOD]);
  expect(await run()).toEqual({
    ok: false,
    failure: { kind: "invalid_request", message: "no", param: "n" },
  });
  expect(asked.calls).toEqual(["a"]);
});

it("a disabled route is left out for a minute and asked again after it", async () => {
  const { asked, run } = routes([BAD_KEY, GOOD], [GOOD]);
  await run();
  await run();
  expect(asked.calls).toEqual(["a", "b", "b"]);
  asked.nowMs += 60_000;
  await run();
  expect(asked.calls.at(-1)).toBe("a");
});

it("with every route disabled the answer is upstream_error, without an attempt", async () => {
  const { asked, run } = routes([BAD_KEY]);
  await run();
  expect(await run()).toMatchObject({ failure: { kind: "upstream_error" } });
  expect(asked.calls).toEqual(["a"]);
});

it("a route that said when to come back is skipped until then, unless it is the only one", async () => {
  const two = routes([BUSY, GOOD], [GOOD]);
  await two.run();
  two.asked.nowMs += 6_999;
  await two.run();
  two.asked.nowMs += 1;
  await two.run();
  expect(two.asked.calls).toEqual(["a", "b", "b", "a"]);
  const one = routes([BUSY, GOOD]);
  await one.run();
  expect(await one.run()).toMatchObject({ ok: true });
});

it("overloaded to the end is upstream_overloaded with the least wait, 1 to 59 seconds", async () => {
  const wait = async (...ms: (number | undefined)[]) => {
    const busy = ms.map((retryAfterMs) => [
      failure({
        kind: "overloaded",
        reason: "503",
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      }),
    ]);
    const result = await routes(...busy).run();
    return result.ok || result.failure.kind !== "upstream_overloaded"
      ? null
      : result.failure.retryAfterSeconds;
  };
  expect(await wait(7000, 3001)).toBe(4);
  expect(await wait(0)).toBe(1);
  expect(await wait(3_600_000)).toBe(59);
  expect(await wait(undefined)).toBe(5);
  const skipped = routes([BUSY], [BUSY]);
  await skipped.run();
  skipped.asked.nowMs += 2000;
  expect(await skipped.run()).toMatchObject({ failure: { retryAfterSeconds: 5 } });
  expect(skipped.asked.calls).toEqual(["a", "b"]);
  expect(await routes([BUSY], [RETRY]).run()).toMatchObject({
    failure: { kind: "upstream_error" },
  });
});

it("a stream whose first events are an error, nothing or a cut goes to the next route and is cancelled", async () => {
  const bad = [
    stream([ERROR]),
    stream([], [CHUNK, ERROR]),
    stream([{ kind: "end" }]),
    stream(),
    stream(new Error("reset")),
  ];
  for (const one of bad) {
    const good = stream([CHUNK], [{ kind: "end" }]);
    // oxlint-disable-next-line no-await-in-loop -- five cases of one rule
    const served = await routes([one.answer], [good.answer]).run({}, true);
    expect(served).toMatchObject({ ok: true, value: { index: 1, attempts: 2 } });
    expect([one.seen.cancelled, good.seen.cancelled]).toEqual([1, 0]);
  }
});

it("a served stream gives the batch that was waited for, then the rest", async () => {
  const good = stream([], [CHUNK], [{ kind: "end" }]);
  const served = await routes([good.answer]).run({}, true);
  if (!served.ok || served.value.answer.kind !== "stream") throw new Error("not served");
  const { events } = served.value.answer;
  expect([await events.next(), await events.next(), await events.next()]).toEqual([
    [CHUNK],
    [{ kind: "end" }],
    null,
  ]);
  events.cancel();
  expect(good.seen.cancelled).toBe(1);
});

it("a route that is silent past its timers is aborted, and a late stream of it is let go", async () => {
  const late = stream([CHUNK]);
  const slow = Promise.withResolvers<ProviderAnswer>();
  const { asked, run } = routes([slow.promise], [GOOD]);
  expect(await run({ headersMs: 1 })).toMatchObject({ ok: true, value: { index: 1 } });
  expect(asked.sent.map((call) => call.signal.aborted)).toEqual([true, false]);
  slow.resolve(late.answer);
  await expect.poll(() => late.seen.cancelled).toBe(1);
  const silent: EventStream = { next: () => never, cancel: () => undefined };
  const first = routes([{ kind: "stream", events: silent }], [GOOD]);
  expect(await first.run({ firstMs: 1 }, true)).toMatchObject({ ok: true, value: { index: 1 } });
  expect(first.asked.sent[0]?.signal.aborted).toBe(true);
});

it("a run that ends stops at once: no attempt after it, none before it", async () => {
  const ended = AbortSignal.abort();
  const before = routes([GOOD]);
  expect(await before.run({ signal: ended })).toMatchObject({ ok: false });
  expect(before.asked.calls).toEqual([]);
  const run = new AbortController();
  const during = routes([never], [GOOD]);
  const result = during.run({ signal: run.signal });
  run.abort();
  expect(await result).toMatchObject({ ok: false, failure: { kind: "upstream_error" } });
  expect(during.asked.calls).toEqual(["a"]);
  expect(during.asked.sent[0]?.signal.aborted).toBe(true);
});

it("the memory of left-out routes is bounded", () => {
  const health = new RouteHealth();
  for (let at = 0; at < 2000; at++) health.leaveOut(`r${at}`, "disabled", 60_000, 0);
  expect(health.leftOut("r0", 1)).toBeNull();
  expect(health.leftOut("r1999", 1)).toEqual({ untilMs: 60_000, why: "disabled" });
  expect(health.leftOut("r1999", 60_000)).toBeNull();
});
