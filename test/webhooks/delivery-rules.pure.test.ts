import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { numberVar } from "../../src/shared/config/config.ts";
import type { DeliveryAttempt } from "../../src/shared/contracts/deliveries.ts";
import {
  WEBHOOK_RESPONSE_BYTES_MAX,
  attemptDelivery,
  webhookPauseMs,
} from "../../src/events/webhooks/delivery-rules.ts";

const MESSAGE = { headers: {}, body: "{}" };
const elapsed = (): number => Date.now();

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a webhook receiver that doesn't respond", () => {
  it("times out after exactly 15 s", async () => {
    vi.useFakeTimers();
    vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
      const never = Promise.withResolvers<Response>();
      init?.signal?.addEventListener("abort", () => never.reject(new Error("aborted")));
      return never.promise;
    });
    const timeoutMs = numberVar({}, "WEBHOOK_TIMEOUT_MS");
    let ended: unknown = null;
    const attempt = attemptDelivery("https://a.b/", MESSAGE, { timeoutMs, elapsed, nowMs: 0 });
    void attempt.then((value) => (ended = value)); // waited for by the clock alone
    await vi.advanceTimersByTimeAsync(14_999);
    expect(ended).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toEqual({
      status: null,
      error: "timeout",
      answer: "",
      durationMs: 15_000,
      retryAfterMs: null,
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ["no byte of a response", false],
    ["a status and the start of a body", true],
  ])("causes a timeout over a real connection after %s", async (_, begins) => {
    const server = createServer((_request, response) => {
      if (begins) response.writeHead(200).write("half an");
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    const attempt = await attemptDelivery(url, MESSAGE, { timeoutMs: 100, elapsed, nowMs: 0 });
    expect(attempt).toMatchObject({ status: null, error: "timeout" });
    server.closeAllConnections();
    server.close();
  });
});

async function answered(response: Response): Promise<DeliveryAttempt> {
  vi.spyOn(globalThis, "fetch").mockResolvedValue(response);
  return attemptDelivery("https://a.b/", MESSAGE, { timeoutMs: 1000, elapsed, nowMs: 0 });
}

describe("a webhook receiver's response", () => {
  it("appears in the delivery up to 1 KiB, and the gateway reads no further", async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new TextEncoder().encode("x".repeat(1000)));
      },
    });
    const { answer, error } = await answered(new Response(endless));
    expect([answer, error]).toEqual(["x".repeat(WEBHOOK_RESPONSE_BYTES_MAX), null]);
    expect(pulled).toBeLessThan(5);
  });

  it.each([
    [200, null],
    [299, null],
    [301, "redirected"],
    [308, "redirected"],
    [400, "status_400"],
    [503, "status_503"],
  ])("leads, with the status %i, to the error %s", async (status, error) => {
    expect(await answered(new Response("", { status }))).toMatchObject({ status, error });
  });
});

describe("a webhook receiver's retry-after header", () => {
  it.each([
    [503, "120", 120_000],
    [429, "0", 0],
    [500, "Thu, 01 Jan 1970 00:01:00 GMT", 60_000],
    [503, "Thu, 01 Jan 1960 00:00:00 GMT", 0],
    [503, "soon", null],
    [503, "-5", null],
    [200, "120", null],
  ])(
    "sets the expected pause for a response with status %i and the value %s",
    async (status, value, retryAfterMs) => {
      const headers = { "retry-after": value };
      expect(await answered(new Response("", { status, headers }))).toMatchObject({ retryAfterMs });
    },
  );

  it("can extend a pause up to an hour, but never shorten a pause", () => {
    const seconds = [1, 2, 3, 4, 5, 50].map((failures) => webhookPauseMs(failures, null) / 1000);
    expect(seconds).toEqual([5, 30, 120, 300, 900, 900]);
    expect([webhookPauseMs(1, 600_000), webhookPauseMs(1, 1e12), webhookPauseMs(9, 0)]).toEqual([
      600_000, 3_600_000, 900_000,
    ]);
  });
});
