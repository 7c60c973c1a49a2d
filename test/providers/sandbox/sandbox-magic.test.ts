import { callOf } from "../adapter-kit.ts";
import { describe, expect, it } from "vitest";
import type { ProviderFailure } from "../../../src/models/core/provider.ts";
import { createSandboxProvider } from "../../../src/models/providers/sandbox/sandbox.ts";
import {
  callSandbox,
  batches,
  chunkChoices,
  complete,
  streamed,
  open,
  contentOf,
  user,
} from "./sandbox-call.ts";

const body = { messages: [user("one two three four five")] };

function failed(failure: ProviderFailure) {
  return { kind: "failure", failure };
}

it.each([
  ["status-408", { kind: "retry", reason: "408" }],
  ["status-429", { kind: "overloaded", reason: "429", retryAfterMs: 2000 }],
  ["status-500", { kind: "retry", reason: "500" }],
  ["status-503", { kind: "overloaded", reason: "503" }],
  ["echo-key-401", { kind: "disabled", reason: "401" }],
  ["html", { kind: "retry", reason: "bad_body" }],
  ["bad-json", { kind: "retry", reason: "bad_body" }],
] satisfies [string, ProviderFailure][])(
  "the sandbox fails for %s like a real provider, streamed or not, without the provider's text",
  async (upstreamId, failure) => {
    expect(await callSandbox(body, { upstreamId })).toEqual(failed(failure));
    expect(await callSandbox(body, { upstreamId, stream: true })).toEqual(failed(failure));
  },
);

describe("the sandbox model slow-first-byte", () => {
  it("waits once, and then responds like the model echo", async () => {
    const upstreamId = "slow-first-byte";
    expect(contentOf(await streamed(body, { upstreamId }))).toBe("one two three four five");
    const [choice] = (await complete(body, { upstreamId })).choices;
    expect(choice.message.content).toBe("one two three four five");
  });

  it("stops waiting when aborted, so that a JSON request can be retried and a stream breaks off", async () => {
    const slow = createSandboxProvider({ firstByteMs: 3_600_000 });
    const controller = new AbortController();
    const { signal } = controller;
    const call = { ...callOf({ upstreamId: "slow-first-byte", body, cap: 10 }), signal };
    const json = slow.send({ ...call, stream: false });
    const answer = await slow.send({ ...call, stream: true });
    const next = answer.kind === "stream" ? answer.events.next() : null;
    controller.abort();
    expect(await json).toEqual(failed({ kind: "retry", reason: "aborted" }));
    await expect(next).rejects.toThrow("connection broke");
  });
});

it("the sandbox returns immediately if the signal is already aborted, whatever the model", async () => {
  const signal = AbortSignal.abort();
  for (const upstreamId of ["echo", "stall", "status-429", "endless"]) {
    expect(await callSandbox(body, { upstreamId, signal })).toEqual(
      failed({ kind: "retry", reason: "aborted" }),
    );
  }
});

it.each(["slow-stream", "no-usage", "huge-usage", "cut", "error-mid"])(
  "the sandbox sends one word at a time for the model %s",
  async (upstreamId) => {
    const stream = await open(body, { upstreamId });
    const first = await batches(stream, 3);
    expect(first.map((batch) => batch.length)).toEqual([1, 1, 1]);
    expect(contentOf(first.flat())).toBe("one two");
    stream.cancel();
  },
);

it("the sandbox model slow-stream returns the same text as echo", async () => {
  const all = await streamed(body, { upstreamId: "slow-stream" });
  expect(contentOf(all)).toBe("one two three four five");
  expect(all.at(-1)).toEqual({ kind: "end" });
});

describe("the sandbox model stall", () => {
  it("sends two words, and then nothing until the signal aborts", async () => {
    const controller = new AbortController();
    const stream = await open(body, { upstreamId: "stall", signal: controller.signal });
    expect(contentOf((await batches(stream, 3)).flat())).toBe("one two");
    const next = stream.next();
    controller.abort();
    await expect(next).rejects.toThrow("connection broke");
  });

  it("ends the stream when a read of it is canceled", async () => {
    const stream = await open(body, { upstreamId: "stall" });
    await batches(stream, 3);
    const next = stream.next();
    stream.cancel();
    expect(await next).toBeNull();
  });

  it("never responds to a request without a stream", async () => {
    const controller = new AbortController();
    const answer = callSandbox(body, { upstreamId: "stall", signal: controller.signal });
    const first = await Promise.race([answer, Promise.resolve("still waiting")]);
    expect(first).toBe("still waiting");
    controller.abort();
    expect(await answer).toEqual(failed({ kind: "retry", reason: "aborted" }));
  });
});

describe("the sandbox model cut", () => {
  it("fails after three words without a finish reason, usage or end, and again at every later read", async () => {
    const stream = await open(body, { upstreamId: "cut" });
    const seen = (await batches(stream, 4)).flat();
    expect(contentOf(seen)).toBe("one two three");
    expect(seen.every((event) => event.kind === "chunk")).toBe(true);
    await expect(stream.next()).rejects.toThrow("connection broke");
    await expect(stream.next()).rejects.toThrow("connection broke");
  });

  it("breaks the connection of a JSON request", async () => {
    expect(await callSandbox(body, { upstreamId: "cut" })).toEqual(
      failed({ kind: "retry", reason: "connection" }),
    );
  });
});

describe("a sandbox model with an error", () => {
  const error = { kind: "error", failure: { kind: "retry", reason: "500" } };

  it("sends an error after three words, and then ends the body (error-mid)", async () => {
    const all = await streamed(body, { upstreamId: "error-mid" });
    expect(contentOf(all)).toBe("one two three");
    expect(all.slice(4)).toEqual([error]);
  });

  it("sends an error as the only event (error-first)", async () => {
    expect(await streamed(body, { upstreamId: "error-first" })).toEqual([error]);
  });
});

describe("a sandbox model with wrong usage", () => {
  it("returns no usage in stream, body and metadata (no-usage)", async () => {
    const all = await streamed(body, { upstreamId: "no-usage" });
    expect(all.map((event) => event.kind)).not.toContain("usage");
    expect(all.at(-1)).toEqual({ kind: "end" });
    const answer = await callSandbox(body, { upstreamId: "no-usage" });
    expect(answer).toMatchObject({ kind: "json", usage: null });
  });

  it("returns a thousand times the actual usage, above the cap (huge-usage)", async () => {
    const answer = await callSandbox(body, { upstreamId: "huge-usage", cap: 100 });
    expect(answer).toMatchObject({ kind: "json", usage: { input: 8000, output: 5000 } });
    const all = await streamed(body, { upstreamId: "huge-usage", cap: 100_000 });
    expect(all).toContainEqual({
      kind: "usage",
      usage: { input: 8000, output: 100_001, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
    });
  });
});

it("the sandbox can split each multi-byte character into two network chunks without losing the character", async () => {
  const upstreamId = "split-utf8";
  const [choice] = (await complete({ messages: [user("héllo 🌍")] }, { upstreamId })).choices;
  expect(choice.message.content).toBe("Grüße, 世界 🌍 héllo 🌍");
  const stream = await open({ messages: [user("héllo 🌍")] }, { upstreamId });
  const all = await batches(stream);
  expect(contentOf(all.flat())).toBe("Grüße, 世界 🌍 héllo 🌍");
  expect(all.slice(0, 4).map((batch) => batch.length)).toEqual([0, 1, 0, 1]);
  expect(chunkChoices(all.flat()).map((one) => one.delta.content)).toContain("世");
});

describe("the sandbox model endless", () => {
  it("sends output far beyond the cap until canceled", async () => {
    const stream = await open(body, { upstreamId: "endless", cap: 2 });
    const all = (await batches(stream, 50)).flat();
    expect(all).toHaveLength(50);
    expect(contentOf(all).startsWith("one two one two ")).toBe(true);
    expect(chunkChoices(all).every((choice) => choice.finish_reason === null)).toBe(true);
    stream.cancel();
    expect(await stream.next()).toBeNull();
  });

  it("never responds to a request without a stream", async () => {
    const controller = new AbortController();
    const answer = callSandbox(body, { upstreamId: "endless", signal: controller.signal });
    controller.abort();
    expect(await answer).toEqual(failed({ kind: "retry", reason: "aborted" }));
  });
});
