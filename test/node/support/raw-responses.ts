import { once } from "node:events";
import { connect } from "node:net";

/** The responses on one connection until the server closed it. */
export type RawResponses = { readonly statuses: readonly number[]; readonly text: string };

/**
 * Writes bytes unchanged and reads until the server closes the connection. The last request must
 * send `connection: close`, or be one after which the server must close it.
 */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawResponses> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => undefined); // a server that rejects a request can reset the upload
  const closed = once(socket, "close");
  socket.write(bytes);
  await closed;
  const text = Buffer.concat(parts).toString("latin1");
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { statuses, text };
}
