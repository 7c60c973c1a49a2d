import { chatOf } from "./adapter-kit.ts";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { attemptRoute } from "../../src/models/routing/attempt.ts";
import { toConversation } from "../../src/models/core/conversation.ts";
import { downloadImages } from "../../src/models/core/inline-image.ts";
import type { Provider, ProviderResult, ProviderCall } from "../../src/models/core/provider.ts";
import { GOOD, never } from "./failover-fixture.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const signal = new AbortController().signal;

/** Returns a request with this number of images, each of which takes its server `ms`. */
function slowImages(count: number, ms: number) {
  const fetching = vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return new Response("ABC", { headers: { "content-type": "image/png" } });
  });
  const content = Array.from({ length: count }, (_, at) => ({
    type: "image_url",
    image_url: { url: `https://images.example.com/${at}` },
  }));
  const read = toConversation(chatOf({ messages: [{ role: "user", content }] }));
  if ("reason" in read) throw new Error(read.reason);
  return {
    fetching,
    inlined: (call: Parameters<typeof downloadImages>[1]) => downloadImages(read, call),
  };
}

it("a request is rejected after 20 seconds of image downloads, and starts no further download", async () => {
  const { fetching, inlined } = slowImages(64, 8000);
  const answer = inlined({ signal });
  await vi.advanceTimersByTimeAsync(19_999);
  expect(fetching).toHaveBeenCalledTimes(12);
  await vi.advanceTimersByTimeAsync(1);
  expect(await answer).toMatchObject({ kind: "refused", reason: "image", param: "messages" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetching).toHaveBeenCalledTimes(12);
  const enough = slowImages(8, 8000).inlined({ signal });
  await vi.advanceTimersByTimeAsync(16_000);
  expect(await enough).toHaveProperty("turns");
});

/** Returns one attempt with 5 seconds for its headers, at a provider that is ready after `work`. */
function attempted(send: (call: ProviderCall) => Promise<ProviderResult>) {
  const provider: Provider = { id: "up", send };
  const request = { kind: "chat", body: chatOf({}), stream: false } as const;
  return attemptRoute({ provider, upstreamId: "m", cap: 9 }, request, {
    signal,
    headersMs: 5000,
    firstMs: 5000,
  });
}

const TIMEOUT = { kind: "failure", failure: { kind: "retry", reason: "timeout" } };

it("the header timeout pauses during downloads", async () => {
  const { inlined } = slowImages(8, 9000);
  const answer = attempted(async (call) => {
    await inlined(call);
    call.onDispatch?.();
    return GOOD;
  });
  await vi.advanceTimersByTimeAsync(18_000);
  expect(await answer).toEqual(GOOD);
});

it("the header timeout starts when the request is sent, after any image downloads", async () => {
  const { inlined } = slowImages(1, 9000);
  let isOver = false;
  const sent = attempted(async (call) => {
    await inlined(call);
    call.onDispatch?.();
    return never;
  });
  void sent.then(() => (isOver = true));
  await vi.advanceTimersByTimeAsync(13_999);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await sent).toEqual(TIMEOUT);
  const plain = attempted(() => never);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await plain).toEqual(TIMEOUT);
  const twice = attempted(async (call) => {
    call.onDispatch?.();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    call.onDispatch?.(); // a second request of the same attempt has no separate time limit
    return never;
  });
  await vi.advanceTimersByTimeAsync(5000);
  expect(await twice).toEqual(TIMEOUT);
  expect(vi.getTimerCount()).toBe(0);
});

it("a completed attempt leaves no timer behind", async () => {
  const { inlined } = slowImages(1, 1000);
  const direct = attempted(async (call) => {
    await Promise.resolve();
    call.onDispatch?.();
    return GOOD;
  });
  expect(await direct).toEqual(GOOD);
  expect(vi.getTimerCount()).toBe(0);
  const after = attempted(async (call) => {
    await inlined(call);
    call.onDispatch?.();
    return GOOD;
  });
  await vi.advanceTimersByTimeAsync(1000);
  expect(await after).toEqual(GOOD);
  expect(vi.getTimerCount()).toBe(0);
});
