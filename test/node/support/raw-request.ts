import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";

export type RawRequest = {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Writes only this number of bytes of the request. */
  readonly sendBytes?: number;
};
/** A connection for the test to control, after the request was written. */
export type RawConnection = {
  readonly socket: Socket;
  /** Returns the received bytes. */
  readonly received: () => Buffer;
  /**
   * Waits until `enough` returns true for the received bytes. Returns false if the other side ends
   * first.
   */
  readonly readUntil: (enough: (received: Buffer) => boolean) => Promise<boolean>;
  /** Sends a TCP reset, as a crashed client does. */
  readonly reset: () => Promise<void>;
};

/** Connects and writes one HTTP/1.1 request, byte for byte. */
export async function openRaw(request: RawRequest): Promise<RawConnection> {
  const { hostname, port } = new URL(request.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let parts: Buffer[] = [];
  const received = (): Buffer => {
    if (parts.length > 1) parts = [Buffer.concat(parts)];
    return parts[0] ?? Buffer.alloc(0);
  };
  let wake: () => void = nobodyWaits;
  socket.on("data", (chunk: Buffer) => {
    parts.push(chunk);
    wake();
  });
  await once(socket, "connect");
  for (const event of ["end", "close", "error"]) socket.on(event, () => wake());
  const bytes = requestBytes(request);
  socket.write(bytes.subarray(0, request.sendBytes ?? bytes.length));
  return {
    socket,
    received,
    readUntil: async (enough) => {
      while (!enough(received()) && !socket.readableEnded && !socket.closed) {
        await new Promise<void>((resolve) => (wake = resolve));
      }
      return enough(received());
    },
    reset: async () => {
      if (socket.closed) return;
      // Node reports a reset during the other side's close as an error, without "close".
      const gone = new Promise<void>((resolve) => {
        for (const event of ["close", "error"]) socket.once(event, () => resolve());
      });
      socket.resetAndDestroy();
      await gone;
    },
  };
}

/** Returns the bytes of a request, by default a `POST` with JSON. */
export function requestBytes({ url, method = "POST", headers = {}, body }: RawRequest): Buffer {
  const { host, pathname, search } = new URL(url);
  const content = body === undefined ? {} : { "content-type": "application/json" };
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const lines = Object.entries({ host, ...content, ...length, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(
    `${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`,
  );
}

function nobodyWaits(): void {
  // A waiting reader stores its wake-up function here.
}
