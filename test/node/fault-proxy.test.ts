import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FaultProxy } from "../../scripts/fault-proxy.ts";
import type { Fault } from "../../scripts/fault-proxy.ts";

type Heard = { readonly host: string | undefined; readonly tag: string; readonly body: string };
const REPLY = "the whole reply, and nothing but the reply";

let server: Server;
let proxy: FaultProxy;
let heard: Heard[];

beforeEach(async () => {
  heard = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      heard.push({ host: request.headers.host, tag: String(request.headers["x-tag"]), body });
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

function post(tag: string, patienceMs = 5000): Promise<Response> {
  return fetch(`${proxy.url}/some/path?q=1`, {
    method: "POST",
    body: `body of ${tag}`,
    headers: { "x-tag": tag },
    signal: AbortSignal.timeout(patienceMs),
  });
}

/** `answered`, `refused` or `reset`; `silence` when it is still waiting when patience ends. */
async function fateOf(tag: string, patienceMs = 5000): Promise<string> {
  try {
    const response = await post(tag, patienceMs);
    return `answered ${response.status} ${await response.text()}`;
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause;
    if (cause?.code === "ECONNREFUSED") return "refused";
    return (error as Error).name === "TimeoutError" ? "silence" : "reset";
  }
}

it("passes host, headers, body and reply as they are", async () => {
  const response = await post("a");
  expect([response.status, response.headers.get("x-from")]).toEqual([201, "target"]);
  expect(await response.text()).toBe(REPLY);
  expect(heard).toEqual([{ host: new URL(proxy.url).host, tag: "a", body: "body of a" }]);
  expect(proxy.counts).toMatchObject({ received: 1, forwarded: 1, answered: 1 });
});

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
])("%j: the client sees %s, the target %i requests", async (fault, fate, reached) => {
  await proxy.set(fault);
  expect(await fateOf("a", fate === "silence" ? 150 : 5000)).toBe(fate);
  await expect.poll(() => heard.length).toBe(reached);
  expect(proxy.counts.forwarded).toBe(reached);
  await proxy.set("pass");
  expect(await fateOf("b")).toBe(`answered 201 ${REPLY}`);
});

it("redirects to the target, which a client that follows would reach", async () => {
  await proxy.set("redirect");
  expect((await post("a")).status).toBe(201);
  expect(heard).toMatchObject([
    { tag: "a", host: expect.not.stringContaining(proxy.url.slice(7)) },
  ]);
  expect(proxy.counts).toMatchObject({ received: 1, forwarded: 0 });
});

it("does to each request what is chosen for it, and counts by path", async () => {
  await proxy.set((operation, body) =>
    operation === "path?q=1" && body === "body of b" ? "garbage" : "pass",
  );
  expect([await fateOf("a"), await fateOf("b")]).toEqual([
    `answered 201 ${REPLY}`,
    "answered 200 <html>",
  ]);
  expect(proxy.counts.operations).toEqual({ "path?q=1": 2 });
});

it("delays a request, and forwards it then", async () => {
  proxy.delayMs = 200;
  await proxy.set("delay");
  const late = post("late");
  await expect.poll(() => proxy.counts.received).toBe(1);
  await proxy.set("pass");
  await post("early");
  expect((await late).status).toBe(201);
  expect(heard.map(({ tag }) => tag)).toEqual(["early", "late"]);
});

it("delays a reply, after a request that was forwarded at once", async () => {
  proxy.delayMs = 200;
  await proxy.set("delay-reply");
  const late = post("late");
  await expect.poll(() => heard.length).toBe(1);
  await proxy.set("pass");
  await post("early");
  expect(proxy.counts.answered).toBe(1);
  expect(await (await late).text()).toBe(REPLY);
  expect(heard.map(({ tag }) => tag)).toEqual(["late", "early"]);
});

it("forwards a held request after a later one has passed, or alone after a while", async () => {
  await proxy.set("reorder");
  const first = post("first");
  await expect.poll(() => proxy.counts.received).toBe(1);
  await proxy.set("pass");
  await post("second");
  expect((await first).status).toBe(201);
  await proxy.set("reorder");
  expect((await post("alone")).status).toBe(201);
  expect(heard.map(({ tag }) => tag)).toEqual(["second", "first", "alone"]);
});

it("draws the same faults from the same seed, about as often as told", async () => {
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
    heard.length - again.concat(other).filter((each) => each === 201).length,
  ]);
  expect(counted(200)).toBeGreaterThan(15);
  expect(counted(200)).toBeLessThan(45);
  expect(counted(503)).toBeGreaterThan(8);
});
