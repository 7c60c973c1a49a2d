import { expect, it } from "vitest";
import { NO_USAGE } from "../../src/shared/usage.ts";
import type { EventStream, ProviderResult, StreamEvent } from "../../src/models/core/provider.ts";
import {
  GOOD,
  RETRY,
  RESET,
  BUSY,
  BAD_KEY,
  REFUSED,
  CHUNK,
  ERROR,
  routes,
  stream,
  never,
} from "./failover-fixture.ts";

/** Anthropic's first event. */
const SO_FAR: StreamEvent = { kind: "usage", usage: NO_USAGE, partial: true };

it("failover returns the first successful response, and sends each route the model name and cap for that route", async () => {
  const { record, run } = routes([RETRY], [GOOD]);
  expect(await run()).toEqual({
    ok: true,
    value: {
      candidate: expect.objectContaining({ at: 1 }),
      attempts: 2,
      failed: [{ candidate: expect.objectContaining({ at: 0 }), why: "html" }],
      skipped: [],
      dropped: [],
      answer: GOOD,
    },
  });
  expect(record.sent.map((call) => [call.upstreamId, "cap" in call && call.cap])).toEqual([
    ["a-model", 10],
    ["b-model", 11],
  ]);
});

it("failover reports the documented reasons for an overloaded and a misconfigured route", async () => {
  const { run } = routes([BUSY], [BAD_KEY], [GOOD]);
  expect(await run()).toMatchObject({
    value: { failed: [{ why: "overloaded" }, { why: "unavailable" }] },
  });
});

it("failover makes at most three attempts, however many routes exist", async () => {
  const { record, run } = routes([RESET], [RESET], [RESET], [GOOD]);
  expect(await run()).toMatchObject({ ok: false, failure: { kind: "upstream_error" } });
  expect(record.calls).toEqual(["a", "b", "c"]);
});

it("failover retries only the last route, once, after a reset, 408 or 5xx", async () => {
  const two = routes([RESET], [RESET]);
  await two.run();
  expect(two.record.calls).toEqual(["a", "b", "b"]);
  const one = routes([RESET, GOOD]);
  expect(await one.run()).toMatchObject({ ok: true, value: { attempts: 2 } });
  const twice = routes([RESET]);
  await twice.run();
  expect(twice.record.calls).toEqual(["a", "a"]);
  for (const other of [RETRY, BUSY, BAD_KEY]) {
    const single = routes([other]);
    await single.run();
    expect(single.record.calls).toEqual(["a"]);
  }
});

it("failover returns a rejection immediately, without account data and without another attempt", async () => {
  const { record, run } = routes([REFUSED], [GOOD]);
  expect(await run()).toEqual({
    ok: false,
    failure: { kind: "invalid_request", message: "no", param: "n" },
  });
  expect(record.calls).toEqual(["a"]);
});

it("failover cancels a stream that starts with an error or ends early, and calls the next route", async () => {
  const bad = [
    stream([ERROR]),
    stream([], [CHUNK, ERROR]),
    stream([SO_FAR], [ERROR]),
    stream([SO_FAR], [{ kind: "end" }]),
    stream([{ kind: "end" }]),
    stream(),
    stream(new Error("reset")),
  ];
  for (const one of bad) {
    const good = stream([CHUNK], [{ kind: "end" }]);
    const served = await routes([one.answer], [good.answer]).run({}, true);
    expect(served).toMatchObject({ ok: true, value: { candidate: { at: 1 }, attempts: 2 } });
    expect([one.seen.cancelled, good.seen.cancelled]).toEqual([1, 0]);
  }
});

it("failover returns the events read so far immediately, and then the rest of the stream", async () => {
  const good = stream([], [SO_FAR], [CHUNK], [{ kind: "end" }]);
  const served = await routes([good.answer]).run({}, true);
  if (!served.ok || served.value.answer.kind !== "stream") throw new Error("not served");
  const { events } = served.value.answer;
  expect([await events.next(), await events.next(), await events.next()]).toEqual([
    [SO_FAR, CHUNK],
    [{ kind: "end" }],
    null,
  ]);
  events.cancel();
  expect(good.seen.cancelled).toBe(1);
});

it("failover aborts a silent route at its timeout, and cancels the stream if it arrives late", async () => {
  const late = stream([CHUNK]);
  const slow = Promise.withResolvers<ProviderResult>();
  const { record, run } = routes([slow.promise], [GOOD]);
  expect(await run({ headersMs: 1 })).toMatchObject({ ok: true, value: { candidate: { at: 1 } } });
  expect(record.sent.map((call) => call.signal.aborted)).toEqual([true, false]);
  slow.resolve(late.answer);
  await expect.poll(() => late.seen.cancelled).toBe(1);
  const silent: EventStream = { next: () => never, cancel: () => undefined };
  const first = routes([{ kind: "stream", events: silent }], [GOOD]);
  expect(await first.run({ firstMs: 1 }, true)).toMatchObject({
    ok: true,
    value: { candidate: { at: 1 } },
  });
  expect(first.record.sent[0]?.signal.aborted).toBe(true);
});

it("failover stops immediately when the request ends", async () => {
  const ended = AbortSignal.abort();
  const before = routes([GOOD]);
  expect(await before.run({ signal: ended })).toMatchObject({ ok: false });
  expect(before.record.calls).toEqual([]);
  const run = new AbortController();
  const during = routes([never], [GOOD]);
  const result = during.run({ signal: run.signal });
  run.abort();
  expect(await result).toMatchObject({ ok: false, failure: { kind: "upstream_error" } });
  expect(during.record.calls).toEqual(["a"]);
  expect(during.record.sent[0]?.signal.aborted).toBe(true);
});
