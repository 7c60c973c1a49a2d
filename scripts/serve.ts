import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

type Served = { readonly port: number; readonly close: () => void };

/**
 * Serves a function of requests on a loopback host and port (0: a free one). Requests have
 * the origin `localhost`. If the function throws, the client gets no response or half of one.
 */
export async function serveRequests(
  handle: (request: Request) => Promise<Response>,
  { host, port }: { readonly host: "127.0.0.1" | "localhost"; readonly port: number },
): Promise<Served> {
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const at = (server.address() as AddressInfo).port;
  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "GET", url = "/" } = incoming;
    const headers = Object.entries(incoming.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as [string, string]] : [],
    );
    const body = await buffer(incoming);
    const request = new Request(new URL(url, `http://localhost:${at}`), {
      method,
      headers,
      ...(method === "POST" && { body }),
    });
    const given = await handle(request);
    outgoing.writeHead(given.status, Object.fromEntries(given.headers));
    outgoing.end(Buffer.from(await given.arrayBuffer()));
  }
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { port: at, close };
}
