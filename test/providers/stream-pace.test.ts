import { expect, it } from "vitest";
import { createBatchedEventStream } from "../../src/models/core/http-provider.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { ClaudeNativeReader as MessageEvents } from "../../src/models/protocols/messages/host-native.ts";
import { ResponsesNativeReader as ResponseEvents } from "../../src/models/protocols/responses/host-stream.ts";
import { createSseReader } from "../../src/models/core/frame-reader.ts";
import type { FrameReader } from "../../src/models/core/frame-reader.ts";

const PACE_MS = 50;
const payload = (delta: object): string =>
  `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;

/** Returns the batches of these chunks. Each chunk is sent once the previous batch was read. */
async function batchesOf(
  chunks: readonly string[],
  paceMs: number,
  payloads: FrameReader = new ChatChunkReader(),
): Promise<number[]> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const writeChunks = async (): Promise<void> => {
    for (const chunk of chunks) {
      await writer.write(encoder.encode(chunk));
    }
    await writer.close();
  };
  const written = writeChunks();
  const events = createBatchedEventStream(readable, createSseReader(payloads), paceMs);
  const batches: number[] = [];
  for (let batch = await events.next(); batch !== null;) {
    if (batch.length > 0) batches.push(batch.length);
    batch = await events.next();
  }
  await written;
  return batches;
}

const CHUNKS = [
  payload({ role: "assistant", content: "" }),
  payload({ content: "a" }),
  payload({ content: "b" }),
  payload({ content: "c" }),
];

it("a stream delivers the role and the first words immediately, and later words at the configured pace", async () => {
  expect(await batchesOf(CHUNKS, PACE_MS)).toEqual([1, 1, 2]);
});

it("a stream's pace starts with the first output, not with comments, usage or roles", async () => {
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n';
  const before = [": ping\n\n", usage, payload({ role: "assistant", content: "" })];
  expect(await batchesOf([...before, ...CHUNKS.slice(1)], PACE_MS)).toEqual([1, 1, 1, 2]);
});

const NATIVE = [
  {
    name: "Responses",
    reader: new ResponseEvents(),
    event: { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0 },
    deltaOf: (delta: string) => delta,
  },
  {
    name: "Messages",
    reader: new MessageEvents("secret", false),
    event: { type: "content_block_delta", index: 0 },
    deltaOf: (text: string) => ({ type: "text_delta", text }),
  },
];

it.each(NATIVE)(
  "a stream in the format of $name is delivered at the configured pace",
  async ({ reader, event, deltaOf }) => {
    const chunks = ["a", "b", "c", "d"].map((text, sequence_number) => {
      const delta = deltaOf(text);
      return `data: ${JSON.stringify({ sequence_number, ...event, delta })}\n\n`;
    });
    expect(await batchesOf(chunks, PACE_MS, reader)).toEqual([1, 3]);
  },
);

it("a stream delivers every chunk separately if the pace is 0", async () => {
  expect(await batchesOf(CHUNKS, 0)).toEqual([1, 1, 1, 1]);
});

it("a stream ends without a failure if the gateway cancels the stream within an event", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const events = createBatchedEventStream(
    readable,
    createSseReader(new ChatChunkReader()),
    PACE_MS,
  );
  void writer.write(new TextEncoder().encode(CHUNKS.join("") + CHUNKS[1]?.slice(0, 20)));
  expect(await events.next()).toHaveLength(4);
  const next = events.next();
  events.cancel();
  expect(await next).toBeNull();
});

it("a stream delivers collected events when canceled, because they may contain the usage", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const events = createBatchedEventStream(readable, createSseReader(new ChatChunkReader()), 10_000);
  void writer.write(encoder.encode(CHUNKS.join("")));
  expect(await events.next()).toHaveLength(4);
  const next = events.next();
  await writer.write(encoder.encode(payload({ content: "d" })));
  await scheduler.wait(0);
  events.cancel();
  expect(await next).toEqual([{ kind: "text", index: 0, json: '"d"' }]);
  expect(await events.next()).toBeNull();
});

it("a stream is read to the end after [DONE], so that the connection can be reused", async () => {
  let pulls = 0;
  const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
  const done = new TextEncoder().encode(`${CHUNKS.join("")}${finish}data: [DONE]\n\n`);
  const body = new ReadableStream<Uint8Array>(
    {
      pull(to) {
        if (pulls++ === 0) to.enqueue(done);
        else to.close();
      },
    },
    { highWaterMark: 0 },
  );
  const events = createBatchedEventStream(body, createSseReader(new ChatChunkReader()), PACE_MS);
  expect((await events.next())?.at(-1)).toEqual({ kind: "end" });
  await scheduler.wait(0);
  expect(pulls).toBe(2);
});
