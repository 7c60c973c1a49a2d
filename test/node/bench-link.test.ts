import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, it } from "vitest";
import { startProgram } from "../../scripts/bench/gateway.ts";
import type { Stoppable } from "../../scripts/bench/gateway.ts";

const ROUND_TRIP_MS = 60;
const open: Stoppable[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map(({ stop }) => stop()));
});

/** A link to a server whose connections are handled so; answers with a connection to the link. */
async function linked(onConnection: (socket: Socket) => unknown): Promise<Socket> {
  const server: Server = createServer({ allowHalfOpen: true }, onConnection);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const link = await startProgram("link.ts", [String(port), String(ROUND_TRIP_MS)]);
  const client = connect({
    host: "127.0.0.1",
    port: Number(new URL(link.url).port),
    allowHalfOpen: true,
  });
  open.push(link, { stop: () => client.destroy() }, { stop: () => server.close() });
  return client;
}

it("a link keeps bytes and their order in both directions, and passes on the end", async () => {
  const client = await linked((socket) => socket.pipe(socket));
  const chunks = Array.from({ length: 100 }, (_, i) => randomBytes(1 + ((i * 997) % 5000)));
  const back = buffer(client);
  for (const chunk of chunks) {
    client.write(chunk);
    await new Promise((resolve) => setImmediate(resolve)); // several arrive at the link by themselves
  }
  client.end();
  expect((await back).equals(Buffer.concat(chunks))).toBe(true);
});

it("a link costs a round trip for a question and its answer, and one more when it opens", async () => {
  const client = await linked((socket) => socket.pipe(socket));
  const ask = async (): Promise<number> => {
    const begunAt = performance.now();
    client.write("?");
    await once(client, "data");
    return performance.now() - begunAt;
  };
  const early = 2; // a timer may fire a moment before its time, never more
  expect(await ask()).toBeGreaterThan(2 * ROUND_TRIP_MS - 2 * early);
  expect(await ask()).toBeGreaterThan(ROUND_TRIP_MS - 2 * early);
});

it("a link whose target is gone closes what was opened to it", async () => {
  const client = await linked((socket) => socket.resetAndDestroy());
  const closed = once(client, "close");
  client.on("error", () => {});
  client.on("end", () => client.end());
  client.resume();
  client.write("?");
  await closed;
  expect(client.destroyed).toBe(true);
});
