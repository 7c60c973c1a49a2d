import * as fc from "fast-check";
import { ChunkBuilder } from "../../src/models/core/output-part.ts";
import type { Receipt, ResponseWriter } from "../../src/models/core/endpoint-adapter.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import type { OutputPart } from "../../src/models/core/output-part.ts";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";
import { messageOf } from "../providers/adapter-kit.ts";

export const words = fc.string({ minLength: 1 });
export const count = fc.nat(1_000_000);
/** A call of a tool. */
export const callOf = (name: fc.Arbitrary<string>): fc.Arbitrary<OutputPart> =>
  fc.record({ id: fc.uuid(), name, input: fc.dictionary(words, words) }).map((one) => {
    return { kind: "call", id: one.id, name: one.name, arguments: JSON.stringify(one.input) };
  });
/** Calls with unique IDs. */
export const callsOf = (name: fc.Arbitrary<string>): fc.Arbitrary<OutputPart[]> =>
  fc.uniqueArray(callOf(name), { maxLength: 3, selector: (one) => ("id" in one ? one.id : "") });

/** Returns a request's receipt with this ID and usage. */
export function receiptOf(id: string, usage: Receipt["usage"]): Receipt {
  const times = { created: 1, ended: 2, promptTokens: 1 };
  const kept = { keeps: false, estimated: false, capLoweredByMoney: false };
  return {
    id,
    model: "m",
    provider: "mock",
    ...times,
    ...kept,
    usage,
    costMicro: 1,
    finishReason: "stop",
  };
}

type Reader = {
  readonly ended?: boolean;
  readonly read: (data: string, name: string) => readonly StreamEvent[];
};

/**
 * Writes an endpoint's stream with this output. Returns the message and last event that a reader of
 * the same protocol gets.
 */
export function streamed(
  pieces: readonly OutputPart[],
  reply: ResponseWriter,
  { receipt, reader }: { readonly receipt: Receipt; readonly reader: Reader },
) {
  if (reply.kind !== "stream") throw new Error("no stream");
  const builder = new ChunkBuilder();
  const events = pieces.flatMap((piece) => builder.addPart(piece));
  const writer = reply.stream(receipt);
  const sent = events.map((event) => {
    if (event.kind === "text") return writer.text(event.index, event.json);
    return event.kind === "chunk" ? writer.chunk(event.chunk) : "";
  });
  const text = writer.begin(null) + sent.join("") + writer.end(receipt);
  const read: StreamEvent[] = [];
  for (const { name, data } of new SseDecoder().events(new TextEncoder().encode(text))) {
    if (reader.ended !== true) read.push(...reader.read(data, name));
  }
  const { usage } = receipt;
  const end = { kind: "end" } as const;
  const expected = [messageOf([...events, { kind: "usage", usage }, end]), end];
  return { sent: expected, received: [messageOf(read), read.at(-1)] };
}
