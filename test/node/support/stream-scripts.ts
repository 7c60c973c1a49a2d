import { setTimeout as sleep } from "node:timers/promises";
import type { MockScript } from "../../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, OPENING, sse, usageChunk } from "../../fixtures/openai-wire.ts";
import { isRead, scripted, startStream } from "./upstream-world.ts";

/** The role and the text "Hello". */
export const HELLO = [OPENING, chunkOf({ content: "Hello" })];

/** Wire text of chunks; what is text already stays as it is. */
export const stream = (...parts: readonly (string | object)[]): string =>
  parts.map((part) => (typeof part === "string" ? part : sse(part))).join("");
export const ends = (...parts: readonly (string | object)[]): MockScript =>
  scripted((response) => void startStream(response).end(stream(...parts)));
/** The first part and, once its client has read of that, the rest. The model's name is its route's, too. */
export const endsLater = (
  first: readonly (string | object)[],
  ...rest: (string | object)[]
): MockScript =>
  scripted(async (response, request) => {
    const read = isRead(request);
    startStream(response).write(stream(...first));
    await read;
    response.end(stream(...rest));
  });
/** The steps of a stream, each in a network chunk of its own, a pause before each. */
export const steps = (ms: number, ...parts: readonly (string | object)[]): MockScript =>
  scripted(async (response) => {
    startStream(response).flushHeaders();
    for (const part of parts) {
      await sleep(ms);
      response.write(stream(part));
    }
    response.end();
  });
/** Resets the connection after them. */
export const cuts = (...parts: readonly (string | object)[]): MockScript =>
  scripted(async (response) => {
    startStream(response).write(stream(...parts));
    await sleep(5);
    response.socket?.resetAndDestroy();
  });
export const stays = (...parts: readonly (string | object)[]): MockScript =>
  scripted((response) => void startStream(response).write(stream(...parts)));
/** Sends the bytes one by one, each in its own write. */
export const byteByByte = (text: string): MockScript =>
  scripted(async (response) => {
    startStream(response);
    for (const byte of Buffer.from(text)) {
      response.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  });
/** Says what the user said, twenty times, a few milliseconds apart. */
export function numbered(): MockScript {
  return scripted(async (response, request) => {
    const [message] = request.json["messages"] as { content: string }[];
    startStream(response).write(stream(OPENING));
    for (let i = 0; i < 20; i++) {
      response.write(stream(chunkOf({ content: `<${message?.content}>` })));
      await sleep(2);
    }
    response.end(stream(FINISH, usageChunk(), DONE));
  });
}

const call = (more: object): object => chunkOf({ tool_calls: [{ index: 0, ...more }] });

/** A tool call of some 300 tokens, in fragments of one token as OpenAI sends them, without usage. */
export function toolCall(): MockScript {
  const first = call({
    id: "call_1",
    type: "function",
    function: { name: "write", arguments: "" },
  });
  const words = Array.from({ length: 300 }, () => call({ function: { arguments: " word" } }));
  return ends(OPENING, first, ...words, chunkOf({}, "tool_calls"), DONE);
}

/** Some 300 tokens of text, a character at a time, without usage. */
export function byCharacter(): MockScript {
  const letters = Array.from(" chapter".repeat(290), (content) => chunkOf({ content }));
  return ends(OPENING, ...letters, FINISH, DONE);
}
