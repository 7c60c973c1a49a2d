import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FaultProxy } from "../fakes/fault-proxy.ts";
import type { Fault } from "../fakes/fault-proxy.ts";

type ReceivedRequest = {
  readonly host: string | undefined;
  readonly tag: string;
  readonly body: string;
  /** Arrival time, from performance.now(). */
  readonly atMs: number;
};
/** A timer can fire this much early. */
const EARLY_MS = 5;
const SILENT_MS = 150;
const REPLY = "the whole reply, and nothing but the reply";

let server: Server;
let proxy: FaultProxy;
let requests: ReceivedRequest[];

beforeEach(async () => {
  requests = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { host, "x-tag": tag } = request.headers;
      requests.push({ host, tag: String(tag), body, atMs: performance.now() });
      response.writeHead(201, { "x-from": "target" }).end(REPLY);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy = await FaultProxy.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(async () => {
  await proxy.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function post(tag: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`${proxy.url}/some/path?q=1`, {
    method: "POST",
    body: `body of ${tag}`,
    headers: { "x-tag": tag },
    ...(signal !== undefined && { signal }),
  });
}

/**
 * Returns `answered`, `refused`, `reset`, or `silence` if the request still waits after the proxy
 * has finished.
 */
async function fateOf(tag: string): Promise<string> {
  const patience = new AbortController();
  const { received } = proxy.counts;
  const silent = setInterval(() => {
    if (proxy.counts.received === received || proxy.underWay > 0) return;
    clearInterval(silent);
    setTimeout(() => patience.abort(), SILENT_MS);
  }, 5);
  try {
    const response = await post(tag, patience.signal);
    return `answered ${response.status} ${await response.text()}`;
  } catch (error) {
    if ((error as Error).name === "AbortError") return "silence";
    const cause = (error as { cause?: { code?: string } }).cause;
    return cause?.code === "ECONNREFUSED" ? "refused" : "reset";
  } finally {
    clearInterval(silent);
  }
}

it.each<[Fault, string, number]>([
  ["drop", "silence", 0],
  ["refuse", "refused", 0],
  ["half-open", "silence", 1],
  ["reset-before", "reset", 0],
  ["reset-after", "reset", 1],
  ["lose-reply", "silence", 1],
  ["duplicate", `answered 201 ${REPLY}`, 2],
  ["resend", `answered 201 ${REPLY}`, 2],
  ["garbage", "answered 200 <html>", 0],
  ["5xx", "answered 503 {}", 0],
])(
  "the fault proxy applies the fault %j: the client gets %s, the target %i requests",
  async (fault, fate, reached) => {
    await proxy.set(fault);
    expect(await fateOf("a")).toBe(fate);
    await expect.poll(() => requests.length).toBe(reached);
    expect(proxy.counts.forwarded).toBe(reached);
    await proxy.set("pass");
    expect(await fateOf("b")).toBe(`answered 201 ${REPLY}`);
  },
);

it("the fault proxy applies the chosen fault to each request, and counts requests by path", async () => {
  await proxy.set((operation, body) =>
    operation === "path?q=1" && body === "body of b" ? "garbage" : "pass",
  );
  expect([await fateOf("a"), await fateOf("b")]).toEqual([
    `answered 201 ${REPLY}`,
    "answered 200 <html>",
  ]);
  expect(proxy.counts.operations).toEqual({ "path?q=1": 2 });
});

it("the fault proxy can delay one request while others pass", async () => {
  proxy.delayMs = 200;
  await proxy.set("delay");
  const sentMs = performance.now();
  const late = post("late");
  await expect.poll(() => proxy.counts.received).toBe(1);
  await proxy.set("pass");
  expect((await post("early")).status).toBe(201);
  expect((await late).status).toBe(201);
  const forwarded = requests.find(({ tag }) => tag === "late");
  expect(forwarded?.atMs).toBeGreaterThanOrEqual(sentMs + 200 - EARLY_MS);
  expect(requests).toHaveLength(2);
});

it("the fault proxy forwards a delayed request after the next request or after a timeout", async () => {
  proxy.reorderMaxMs = 100_000;
  await proxy.set("reorder");
  const first = post("first");
  await expect.poll(() => proxy.counts.received).toBe(1);
  await proxy.set("pass");
  await post("second");
  expect((await first).status).toBe(201);
  proxy.reorderMaxMs = 100;
  await proxy.set("reorder");
  expect((await post("alone")).status).toBe(201);
  expect(requests.map(({ tag }) => tag)).toEqual(["second", "first", "alone"]);
});

it("the fault proxy makes the same choices for the same seed, at about the configured rate", async () => {
  const odds = { garbage: 0.3, "5xx": 0.2 } as const;
  const drawn = async (seed: number): Promise<number[]> => {
    await proxy.set({ seed, odds });
    const statuses: number[] = [];
    for (let i = 0; i < 100; i++) statuses.push((await post(`${i}`)).status);
    return statuses;
  };
  const [one, again, other] = [await drawn(1), await drawn(1), await drawn(2)];
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
  const counted = (status: number): number => one.filter((each) => each === status).length;
  expect([counted(200), counted(503), counted(201)]).toEqual([
    proxy.counts.drawn.garbage - again.concat(other).filter((each) => each === 200).length,
    proxy.counts.drawn["5xx"] - again.concat(other).filter((each) => each === 503).length,
    requests.length - again.concat(other).filter((each) => each === 201).length,
  ]);
  expect(counted(200)).toBeGreaterThan(15);
  expect(counted(200)).toBeLessThan(45);
  expect(counted(503)).toBeGreaterThan(8);
});
