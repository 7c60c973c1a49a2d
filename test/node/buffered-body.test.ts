import { once } from "node:events";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bundleWorker } from "../../scripts/bundle.ts";
import { BUFFERED_BYTES_MAX } from "../../src/models/core/paced-reader.ts";

/**
 * Data that a provider sends after "a" by path, once the Worker has read "a". Each piece is a
 * separate chunk.
 */
const SENT: Readonly<Record<string, (response: ServerResponse) => Promise<void>>> = {
  "/words": async (response) => {
    for (const word of ["b", "c", "d"]) {
      response.write(word);
      await sleep(10);
    }
    sent.resolve();
    await once(response, "close");
    closed.resolve();
  },
  "/end": async (response) => void response.end("b"),
  "/break": async (response) => {
    response.write("b");
    await sleep(50);
    response.destroy();
  },
  "/much": async (response) => void response.end("b".repeat(4 * BUFFERED_BYTES_MAX)),
};
/** Resolve when /words has sent everything, and when its connection is closed. */
const [sent, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
/** Callbacks by path, called once the Worker has read the first bytes. */
const gatherers = new Map<string, () => void>();
const upstream = createServer((request, response) => {
  const { url = "" } = request;
  const [, of] = /^\/gathers(\/.*)$/.exec(url) ?? [];
  void (async () => {
    if (of !== undefined) {
      gatherers.get(of)?.();
      if (of === "/words") await sent.promise;
      response.end();
      return;
    }
    const gathers = new Promise<void>((resolve) => gatherers.set(url, resolve));
    response.write("a");
    await gathers;
    await SENT[url]?.(response);
  })();
});
let worker: Miniflare;
beforeAll(async () => {
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const code = await bundleWorker(
    false,
    path.join(import.meta.dirname, "../fixtures/buffered-body-worker.ts"),
  );
  worker = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      workers: [
        {
          name: "gathering",
          compatibilityDate: "2026-11-02",
          bindings: { UPSTREAM: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` },
          modules: [{ type: "ESModule", path: "index.js", contents: code }],
        },
      ],
    }),
  );
  await worker.ready;
});
afterAll(async () => {
  await worker.dispose();
  upstream.closeAllConnections();
  upstream.close();
});

async function read(what: string): Promise<Record<string, unknown>> {
  return (await (await worker.dispatchFetch(`http://x/${what}`)).json()) as Record<string, unknown>;
}

it("a buffered body returns all buffered bytes in one read, and closes the provider's connection if canceled", async () => {
  const { reads, why } = await read("words?waitMs=200");
  expect(why).toBe("waited");
  expect(reads).toEqual(["a", "bcd"]);
  await closed.promise;
});

it("a buffered body wakes a waiting reader at its end, after returning the buffered bytes", async () => {
  expect(await read("end?waitMs=100000&all")).toEqual({
    reads: ["a", "b", null],
    gathers: true,
    why: "woken",
    after: false,
  });
});

it("a buffered body wakes a waiting reader when an error occurs, and returns the error", async () => {
  const { reads, why, after } = await read("break?waitMs=100000&all");
  expect(why).toBe("woken");
  expect(reads).toEqual(["a", "b", "broken"]);
  expect(after).toBe(false);
});

it("a buffered body wakes a waiting reader once its buffer is full, without losing bytes", async () => {
  const { reads, why } = await read("much?waitMs=100000&all");
  expect(why).toBe("woken");
  expect((reads as string[]).join("")).toBe(`a${"b".repeat(4 * BUFFERED_BYTES_MAX)}`);
});
