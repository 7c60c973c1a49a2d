import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linkSecret } from "../../scripts/region.ts";
import type { LinkAnswer, LinkCall } from "../fixtures/link-messages.ts";
import { signMessage } from "../fixtures/peer-message.ts";
import type { SignedMessage } from "../fixtures/peer-message.ts";
import { Account, answerOf } from "./support/account.ts";
import { openRaw } from "./support/raw-request.ts";
import { LINK, startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const ENTRY = path.join(import.meta.dirname, "../fixtures/link-worker.ts");
const CALLS = 5;
type Name = "eu" | "us";

let regions: TwoRegions;
let keys: Record<Name, string>;
beforeAll(async () => {
  regions = await startTwoRegions({ entry: ENTRY });
  const open = async (name: Name) =>
    (await Account.open(() => regions[name], { keyScope: "global" })).key;
  keys = { eu: await open("eu"), us: await open("us") };
});
afterAll(() => regions.stop());

const other = (name: Name): Name => (name === "eu" ? "us" : "eu");

/** Makes region `from` look a key up in the other region. */
async function lookUp(from: Name, call: LinkCall): Promise<LinkAnswer> {
  const response = await fetch(`${regions[from].url}__call`, {
    method: "POST",
    body: JSON.stringify(call),
  });
  return (await response.json()) as LinkAnswer;
}

/**
 * Looks keys up in both directions, several times at once. Returns the number of successful
 * lookups.
 */
async function found(): Promise<number> {
  const calls = (["eu", "us"] as const).flatMap((from) =>
    Array.from({ length: CALLS }, () => lookUp(from, { key: keys[other(from)] })),
  );
  const answers = await Promise.all(calls);
  return answers.filter(({ body }) => (body as { ok?: boolean } | null)?.ok === true).length;
}

/** Returns a message from `sender` to the other region. */
async function messageFrom(sender: Name, secret: string): Promise<SignedMessage> {
  const to = other(sender);
  const { hash } = await lookUp(sender, { key: keys[to] });
  const url = `${regions[to].url}internal/v1/lookup`;
  const body = JSON.stringify({ v: 1, key_hash: hash });
  return signMessage({ url, sender, secret, signedAt: Date.now(), body });
}

/** Delivers a message to a region, with any host name. */
async function deliver(message: SignedMessage, to: Name, host?: string): Promise<number> {
  const { pathname } = new URL(message.url);
  const { method, headers, body } = message;
  const connection = await openRaw({
    url: `${regions[to].url}${pathname.slice(1)}`,
    method,
    headers: { ...headers, ...(host !== undefined && { host }) },
    body,
  });
  await connection.readUntil((received) => received.includes("}"));
  await connection.reset();
  return answerOf(connection).status;
}

describe("each of two connected regions", () => {
  it("looks up the other region's keys over HTTP", async () => {
    for (const from of ["eu", "us"] as const) {
      const answer = await lookUp(from, { key: keys[other(from)] });
      expect(answer).toMatchObject({
        status: 200,
        body: { ok: true, scope: "global", rpm_limit: 1000 },
      });
      const { org_id } = answer.body as { org_id: string };
      const home = regions[other(from)];
      const response = await fetch(`${home.baseUrl}/models`, {
        headers: { authorization: `Bearer ${keys[other(from)]}` },
      });
      expect(response.headers.get("openai-organization")).toBe(org_id);
    }
  });

  it("rejects unknown keys of the other region", async () => {
    for (const from of ["eu", "us"] as const) {
      const answer = await lookUp(from, { key: keys[from] });
      expect(answer).toMatchObject({
        status: 200,
        body: { ok: false, failure: { kind: "invalid_api_key" } },
      });
    }
  });
});

describe("a signed message between regions", () => {
  it("works repeatedly while the signature is valid, but only in the region that it was signed for", async () => {
    for (const [sender, secret] of [
      ["eu", linkSecret(LINK, "eu", "us")],
      ["us", linkSecret(LINK, "us", "eu")],
    ] as const) {
      const message = await messageFrom(sender, secret);
      const { host } = new URL(message.url);
      expect(await deliver(message, other(sender))).toBe(200);
      expect(await deliver(message, other(sender))).toBe(200);
      expect(await deliver(message, sender)).toBe(404);
      expect(await deliver(message, sender, host)).toBe(404);
      // plain http from another host
      expect(await deliver(message, other(sender), "gateway.test")).toBe(400);
      expect(await deliver(await messageFrom(sender, "x".repeat(32)), other(sender))).toBe(404);
    }
  });
});

describe("a call to an unavailable region", () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
    await regions.restart("eu");
  });

  /** Starts a loopback server that treats each connection with `behave`. Counts the connections. */
  async function broken(
    behave: (socket: Socket) => void,
  ): Promise<{ url: string; reached: () => number }> {
    let count = 0;
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      count += 1;
      behave(socket);
    });
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, reached: () => count };
  }

  it.each<[string, (socket: Socket) => void]>([
    ["never responds", () => undefined],
    ["resets", (socket) => socket.once("data", () => socket.resetAndDestroy())],
    [
      "stops within its response",
      (socket) =>
        socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")),
    ],
  ])("fails after two attempts if the other region is unavailable: %s", async (_name, behave) => {
    const { url, reached } = await broken(behave);
    await regions.restart("eu", { PEERS: JSON.stringify([{ region: "us", url }]) });
    const answer = await lookUp("eu", { key: keys.us, budgetMs: 1000 });
    expect(answer).toMatchObject({ status: null, body: null });
    expect(reached()).toBe(2);
    const lines = () =>
      regions.eu.log.filter(({ message }) => message.includes("peer_unreachable"));
    await expect.poll(lines).toHaveLength(1); // a line can follow the response
  });

  it("fails if the other region's response is empty", async () => {
    await regions.restart("eu", { PEERS: '[{"region":"us","url":"http://127.0.0.1:1"}]' });
    expect(await lookUp("eu", { key: keys.us })).toMatchObject({ status: null, body: null });
  });
});

describe("the secrets of the connection between regions", () => {
  it("can be replaced step by step, with a restart after each step, without a failed call", async () => {
    const old = linkSecret(LINK, "eu", "us");
    const fresh = "fresh-eu-signs-".padEnd(40, "f");
    const steps: readonly [Name, Record<string, string>][] = [
      ["us", { PEER_IN_EU_NEXT: fresh }],
      ["eu", { PEER_OUT_US_NEXT: fresh }],
      ["us", { PEER_IN_EU: fresh, PEER_IN_EU_NEXT: fresh }],
      ["us", { PEER_IN_EU: fresh }],
      ["eu", { PEER_OUT_US: fresh, PEER_OUT_US_NEXT: fresh }],
      ["eu", { PEER_OUT_US: fresh }],
    ];
    expect(await found()).toBe(2 * CALLS);
    for (const [name, bindings] of steps) {
      await regions.restart(name, bindings);
      expect([name, bindings, await found()]).toEqual([name, bindings, 2 * CALLS]);
    }
    expect(await deliver(await messageFrom("eu", fresh), "us")).toBe(200);
    expect(await deliver(await messageFrom("eu", old), "us")).toBe(404);
    // A secret that the other region doesn't know breaks only one direction.
    await regions.restart("eu", { PEER_OUT_US: "y".repeat(40) });
    expect(await found()).toBe(CALLS);
  });
});
