import * as fc from "fast-check";
import { expect, it } from "vitest";
import { toCompletion } from "../../../src/models/core/output-part.ts";
import type { OutputPart } from "../../../src/models/core/output-part.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { readResponsesCompletion } from "../../../src/models/protocols/responses/host-answer.ts";
import { ResponsesChunkReader } from "../../../src/models/protocols/responses/host-stream.ts";
import { callsOf, count, streamed, words } from "../both-ways.ts";
import { requestOf, BODY, RECEIPT } from "./stream-kit.ts";

/** The possible output of a model without thoughts, which only their author can read. */
const outputs = fc
  .tuple(
    fc.option(
      words.map((text): OutputPart[] => [{ kind: "text", text }]),
      { nil: [] },
    ),
    callsOf(fc.constant("plain")),
    fc.constantFrom("stop", "length"),
  )
  .filter(([text, calls]) => text.length + calls.length > 0)
  .map(([text, calls, reason]): OutputPart[] =>
    [text, calls, { kind: "finish" as const, reason }].flat(),
  );
const usages: fc.Arbitrary<Usage> = fc
  .record({
    input: fc.integer({ min: 1, max: 1_000_000 }),
    cacheRead: count,
    cacheWrite: fc.constant(0),
    output: count,
  })
  .chain((usage) => fc.nat(usage.output).map((reasoning) => Object.assign({ reasoning }, usage)));
const finishIn = (pieces: readonly OutputPart[]): string =>
  pieces.flatMap((piece) => (piece.kind === "finish" ? [piece.reason] : []))[0] ?? "stop";

it("a response written by the gateway's endpoint is parsed back to the original output", () => {
  const { reply } = requestOf(BODY);
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      const whole = toCompletion([pieces], usage);
      if (reply.kind !== "json") throw new Error("a stream");
      const receipt = { ...RECEIPT, usage, finishReason: finishIn(pieces) };
      const written = JSON.stringify(reply.json(whole.body, receipt));
      expect(
        readResponsesCompletion(JSON.parse(written) as Record<string, unknown>, "key"),
      ).toEqual(whole);
    }),
  );
});

it("a Responses stream written by the gateway's endpoint is parsed back to the original pieces", () => {
  const { reply } = requestOf({ ...BODY, stream: true });
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      const receipt = { ...RECEIPT, usage, finishReason: finishIn(pieces) };
      const result = streamed(pieces, reply, { receipt, reader: new ResponsesChunkReader("key") });
      expect(result.received).toEqual(result.sent);
    }),
  );
});
