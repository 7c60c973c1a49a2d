import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const HOST = "127.0.0.1";
/**
 * A range of ports below those that systems assign to outgoing connections (Linux: from 32768,
 * others: from 49152).
 */
const PORTS = { from: 10_240, to: 32_767 } as const;
const TRIES_MAX = 100;
const given = new Set<number>();

/**
 * Returns an unused loopback port. On Linux, no other process gets the port while this one runs,
 * because tests restart servers on their ports.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (given.has(port)) continue;
    given.add(port);
    if ((await isReserved(port)) && !(await isPortInUse(port))) return port;
  }
  throw new Error(`no free loopback port: tried ${TRIES_MAX} from ${PORTS.from} to ${PORTS.to}`);
}

/**
 * Reserves a port among all callers with an abstract socket, which Linux frees when the process
 * ends. Returns false if another process reserved it. On other systems, always returns true.
 */
function isReserved(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const name = createServer();
    name.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "EADDRINUSE"));
    name.listen({ path: `\0turnpike-port-${port}`, exclusive: true }, () => {
      name.unref();
      resolve(true);
    });
  });
}

/** Reports whether another program listens on this loopback port, or listening isn't allowed. */
export function isPortInUse(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(true));
    server.listen(port, HOST, () => {
      server.close(() => resolve(false));
    });
  });
}
