import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const HOST = "127.0.0.1";
/**
 * Below what systems hand out by themselves (Linux from 32768, others from 49152): between the look and the
 * use, no connection that leaves this machine takes such a port.
 */
const PORTS = { from: 10_240, to: 32_767 } as const;
const TRIES_MAX = 100;
const given = new Set<number>();

/** A loopback port that nothing listens on right now, and that this process was not given before. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (given.has(port)) continue;
    given.add(port);
    // oxlint-disable-next-line no-await-in-loop -- one port after the other
    if (!(await isPortTaken(port))) return port;
  }
  throw new Error(
    `no free loopback port among ${TRIES_MAX} tried from ${PORTS.from} to ${PORTS.to}`,
  );
}

/** Whether another program listens on this loopback port (or it may not be listened on). */
export function isPortTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(true));
    server.listen(port, HOST, () => {
      server.close(() => resolve(false));
    });
  });
}
