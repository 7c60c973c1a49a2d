import { expect, it } from "vitest";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import {
  chunkOf,
  DONE,
  FINISH,
  OPENING,
  openAiEvent,
  USAGE,
  usageChunk,
} from "../fixtures/openai-replies.ts";
import { eventsOf } from "./adapter-kit.ts";

/** Returns for each usage report of a stream whether it is complete. */
function completeFlags(choiceCount: number, ...chunks: readonly object[]): boolean[] {
  const reader = new ChatChunkReader(undefined, {}, choiceCount);
  return chunks
    .flatMap((chunk) => reader.read(JSON.stringify(chunk), "message"))
    .flatMap((event) => (event.kind === "usage" ? [event.partial !== true] : []));
}

const choice = (index: number, finish: string | null, more: object = {}) => ({
  ...chunkOf({}),
  choices: [{ index, delta: { content: "x" }, finish_reason: finish }],
  ...more,
});
const used = { usage: USAGE };

it("usage is reported as complete only after every requested choice has finished", () => {
  expect(completeFlags(1, choice(0, null), usageChunk())).toEqual([false]);
  expect(completeFlags(1, usageChunk(), OPENING, FINISH)).toEqual([false]);
  expect(completeFlags(1, OPENING, FINISH, usageChunk())).toEqual([true]);
  expect(completeFlags(1, OPENING, chunkOf({}, "stop", used))).toEqual([true]);
  const [one, two] = [choice(0, "stop", used), choice(1, "stop", used)];
  expect(completeFlags(2, one, choice(1, null, used), two)).toEqual([false, false, true]);
  expect(completeFlags(2, one, usageChunk(), two, usageChunk())).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

it("the number of requested choices comes from the request", async () => {
  const host = { id: "openai", baseUrl: "https://upstream.test/v1", secret: "k" };
  const provider = createOpenAiCompatibleProvider({ ...host, profile: OPENAI_HOST_PROFILE });
  const body = [choice(0, "stop", used), choice(1, "stop")].map(openAiEvent).join("") + DONE;
  const reply = { status: 200, headers: { "content-type": "text/event-stream" }, body };
  for (const [n, partial] of [
    [2, true],
    [1, undefined],
  ] as const) {
    const events = await eventsOf(provider, { body: { messages: [], n }, stream: true }, reply);
    expect(events.find((event) => event.kind === "usage")?.partial).toBe(partial);
  }
});
