import { once } from "node:events";
import { connect } from "node:net";

/** What came back over one connection, until the server ended it. */
export type RawAnswers = { readonly statuses: readonly number[]; readonly text: string };

/**
 * Writes these bytes to the server as they are, and reads until it ends the connection: the last
 * request among them must say `connection: close`, or be one after which a server has to hang up.
 */
export async function answersTo(url: string, bytes: string | Buffer): Promise<RawAnswers> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => undefined); // a server that rejects may reset the upload
  const closed = once(socket, "close");
  socket.write(bytes);
  await closed;
  const text = Buffer.concat(parts).toString("latin1");
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { statuses, text };
}
