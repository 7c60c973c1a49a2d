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

/**
 * A loopback port that nothing listens on right now, and that this process was not given before. On Linux nor
 * is any other one while this one lives: tests in several processes use theirs a while after they asked, stop
 * what listens there, and start it again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (given.has(port)) continue;
    given.add(port);
    // oxlint-disable-next-line no-await-in-loop -- one port after the other
    if ((await isReserved(port)) && !(await isPortTaken(port))) return port;
  }
  throw new Error(
    `no free loopback port among ${TRIES_MAX} tried from ${PORTS.from} to ${PORTS.to}`,
  );
}

/**
 * Reserves a port among all that ask here: by a socket of that name, which Linux keeps in no file and frees
 * with the process. False where another process has it; elsewhere there are no such names, and it is true.
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
