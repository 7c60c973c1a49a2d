import { createServer } from "node:net";

const HOST = "127.0.0.1";

/** A loopback port that nothing listens on right now. */
export async function freePort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === null) throw new Error("no free loopback port");
  return port;
}

/** Whether another program listens on this loopback port (or it may not be listened on). */
export async function isPortTaken(port: number): Promise<boolean> {
  return (await listenOnce(port)) === null;
}

function listenOnce(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(null));
    server.listen(port, HOST, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? null) : null));
    });
  });
}
