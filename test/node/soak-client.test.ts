import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send } from "../soak/client.ts";

const HEAD =
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n";
const WORD = 'data: {"choices":[]}\n\n';
const DONE = "data: [DONE]\n\n";
const ERROR = 'data: {"error":{"message":"no"}}\n\n';
const END = "0\r\n\r\n";

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const stream = (...texts: readonly string[]): string => HEAD + texts.map(chunk).join("");
const json = (body: string, length = body.length): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;

/** Bytes that a server sends, its end, and the client's name for it. */
const ENDS: Readonly<Record<string, readonly [bytes: string, by: "end" | "reset", fate: string]>> =
  {
    "a stream with [DONE]": [stream(WORD, DONE) + END, "end", "whole"],
    "[DONE] in two pieces": [stream(WORD, "data: [DO", "NE]\n\n") + END, "end", "whole"],
    "a complete JSON response": [json("{}"), "end", "whole"],
    "a stream with an error event": [stream(WORD, ERROR) + END, "end", "cut"],
    "a stream that ends without either": [stream(WORD) + END, "end", "mute"],
    "an empty stream": [stream() + END, "end", "mute"],
    "half of a [DONE]": [stream(WORD, "data: [DONE]\n") + END, "end", "mute"],
    "[DONE] within a text": [stream('data: "data: [DONE]"\n\n') + END, "end", "mute"],
    "an error event followed by more events": [stream(ERROR, WORD) + END, "end", "mute"],
    "a connection closed before the body's end": [stream(WORD), "end", "broken"],
    "a connection reset before the body's end": [stream(WORD), "reset", "broken"],
    "a connection closed after [DONE], before the body's end": [stream(DONE), "end", "broken"],
    "a connection closed within a chunk": [HEAD + chunk(WORD).slice(0, 9), "end", "broken"],
    "half of a JSON response": [json("{", 2), "end", "broken"],
    "a connection closed before the headers": ["", "end", "broken"],
  };

let server: Server;
let next: (socket: Socket) => void = () => undefined;
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => next(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

describe("the result that a soak test's client reports", () => {
  it.each(Object.entries(ENDS))(
    "contains the outcome of the connection: %s",
    async (_, [bytes, by, fate]) => {
      next = (socket) => {
        if (by === "end") socket.end(bytes);
        else socket.write(bytes, () => socket.resetAndDestroy());
      };
      const { port } = server.address() as AddressInfo;
      const call = { key: "k", body: '{"stream":true}' };
      const seen = await send({ ...call, url: `http://127.0.0.1:${port}/` });
      expect(seen.fate).toBe(fate);
    },
  );
});
