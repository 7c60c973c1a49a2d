import { setTimeout as sleep } from "node:timers/promises";
import type { MockScript } from "../../fixtures/openai-mock.ts";
import {
  chunkOf,
  DONE,
  FINISH,
  OPENING,
  openAiEvent,
  usageChunk,
} from "../../fixtures/openai-replies.ts";
import { waitUntilRead, scripted, startStream } from "./upstream-fixture.ts";

/** The role and the text "Hello". */
export const HELLO = [OPENING, chunkOf({ content: "Hello" })];

/** Returns chunks as stream text. Texts stay unchanged. */
export const stream = (...parts: readonly (string | object)[]): string =>
  parts.map((part) => (typeof part === "string" ? part : openAiEvent(part))).join("");
export const ends = (...parts: readonly (string | object)[]): MockScript =>
  scripted((response) => void startStream(response).end(stream(...parts)));
/**
 * Sends the first part and, after the client has read some of it, the rest. The model and its route
 * have the same name.
 */
export const endsLater = (
  first: readonly (string | object)[],
  ...rest: (string | object)[]
): MockScript =>
  scripted(async (response, request) => {
    const read = waitUntilRead(request);
    startStream(response).write(stream(...first));
    await read;
    response.end(stream(...rest));
  });
/** Sends each part in its own network chunk after a pause. */
export const steps = (ms: number, ...parts: readonly (string | object)[]): MockScript =>
  scripted(async (response) => {
    startStream(response).flushHeaders();
    for (const part of parts) {
      await sleep(ms);
      response.write(stream(part));
    }
    response.end();
  });
/** Resets the connection after the parts. */
export const cuts = (...parts: readonly (string | object)[]): MockScript =>
  scripted(async (response) => {
    startStream(response).write(stream(...parts));
    await sleep(5);
    response.socket?.resetAndDestroy();
  });
export const stays = (...parts: readonly (string | object)[]): MockScript =>
  scripted((response) => void startStream(response).write(stream(...parts)));
/** Sends each byte in its own write. */
export const byteByByte = (text: string): MockScript =>
  scripted(async (response) => {
    startStream(response);
    for (const byte of Buffer.from(text)) {
      response.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  });
/** Repeats the user's text twenty times, a few ms apart. */
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

/** Sends a tool call of about 300 tokens, one token at a time as OpenAI does, without usage. */
export function toolCall(): MockScript {
  const first = call({
    id: "call_1",
    type: "function",
    function: { name: "write", arguments: "" },
  });
  const words = Array.from({ length: 300 }, () => call({ function: { arguments: " word" } }));
  return ends(OPENING, first, ...words, chunkOf({}, "tool_calls"), DONE);
}

/** Sends about 300 tokens of text, one character at a time, without usage. */
export function byCharacter(): MockScript {
  const letters = Array.from(" chapter".repeat(290), (content) => chunkOf({ content }));
  return ends(OPENING, ...letters, FINISH, DONE);
}
