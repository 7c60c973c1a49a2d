import { expect, it } from "vitest";
import { StopSource } from "../../src/shared/timers.ts";
import { failover } from "../../src/models/routing/failover.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { surviveCollections } from "../fixtures/garbage-collection.ts";
import { CASES } from "../fuzz/provider-cases.ts";
import { mockNetwork, chatOf } from "./adapter-kit.ts";
import { CHUNK, RETRY, stream } from "./failover-fixture.ts";

/**
 * Returns a stream that its second route started after the first one failed, and a reference to its
 * prompt.
 */
async function startStream(provider: Provider, upstreamId: string) {
  const body = chatOf({ messages: [{ role: "user", content: "a long prompt" }] });
  const prompt = new WeakRef<object>(body);
  const stop = new StopSource();
  const failing: Provider = { id: "failing", send: () => Promise.resolve(RETRY) };
  const served = await failover(
    [failing, provider].map((one) => ({ provider: one, upstreamId, cap: 256 })),
    { kind: "chat", body, stream: true },
    {
      health: new RouteHealth(),
      now: () => 0,
      signal: stop,
      headersMs: 5000,
      firstMs: 5000,
      pauseMs: () => 0,
    },
  );
  return { prompt, stop, served };
}

const PLAIN: Provider = {
  id: "plain",
  send(call) {
    call.onDispatch?.();
    return Promise.resolve(stream([CHUNK]).answer);
  },
};

/** A stream of each provider, whose reader only gets the requested data. */
const STREAMS = CASES.filter(
  (one, at) =>
    one.stream && at === CASES.findIndex((any) => any.stream && any.provider === one.provider),
);

it("an adapter releases the prompt's memory once streaming starts", async () => {
  const plain = await startStream(PLAIN, "m");
  const open = [{ id: PLAIN.id, ...plain }];
  for (const { provider, upstreamId, reply } of STREAMS) {
    mockNetwork(reply);
    open.push({ id: provider.id, ...(await startStream(provider, upstreamId)) });
  }
  for (const { id, prompt, stop, served } of open) {
    expect(await surviveCollections(prompt), id).toBeUndefined();
    expect(served.ok && served.value.answer.kind === "stream" && !stop.aborted, id).toBe(true);
  }
});
