import * as fc from "fast-check";
import { expect, it } from "vitest";
import { eventsOf, eventsSoFar } from "./follow.ts";
import { startStream, call, completion, json, more, RECEIPT, streamed } from "./stream-kit.ts";
import type { Piece } from "./stream-kit.ts";

const CUSTOM = new Set(["patch", "files__write"]);

/** A text split anywhere, also within a character. */
const pieces = (text: string): fc.Arbitrary<string[]> =>
  fc.array(fc.nat(text.length), { maxLength: 6 }).map((cuts) => {
    const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
    return at.slice(1).map((end, index) => text.slice(at[index], end));
  });
const words = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", 'a"\\\n', "😀é"));
const toolCall = fc.record({
  id: fc.uuid(),
  name: fc.constantFrom("plain", "patch", "files__read", "files__write", "unknown"),
  args: fc.oneof(
    fc
      .dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 })
      .map((value) => JSON.stringify(value)),
    words.map((input) => JSON.stringify({ input })),
    words.map((input) => `{ "input" : ${JSON.stringify(input)} }`),
    fc.constant("{}"),
  ),
});
const detail = fc.record({ type: fc.constantFrom("a.signed", "b.data"), data: words });
const logprob = fc.record({
  token: words,
  logprob: fc.double({ max: 0, min: -9, noNaN: true }),
  bytes: fc.option(fc.array(fc.nat(255), { maxLength: 4 })),
  top_logprobs: fc.constant([]),
});
const annotation = fc.record({
  type: fc.constant("url_citation"),
  url_citation: fc.record({
    url: fc.webUrl(),
    title: words,
    start_index: fc.nat(),
    end_index: fc.nat(),
  }),
});
const message = fc.record({
  reasoning: words,
  details: fc.array(detail, { maxLength: 3 }),
  content: words,
  logprobs: fc.array(logprob, { maxLength: 3 }),
  annotations: fc.array(annotation, { maxLength: 2 }),
  refusal: words,
  calls: fc.uniqueArray(toolCall, { maxLength: 4, selector: ({ id }) => id }),
});
const finish = fc.constantFrom("stop", "tool_calls", "length", "content_filter");

it("a Responses stream of any output adds up to the equivalent JSON response", () => {
  fc.assert(
    fc.property(fc.gen(), message, finish, (gen, output, finishReason) => {
      const split = (text: string): string[] => gen(pieces, text).filter((piece) => piece !== "");
      const deltas: Piece[] = [{ role: "assistant", content: "" }];
      for (const reasoning_content of split(output.reasoning)) deltas.push({ reasoning_content });
      for (const one of output.details) deltas.push({ reasoning_details: [one] });
      deltas.push(...split(output.content));
      if (output.logprobs.length + output.annotations.length > 0) {
        deltas.push({
          content: "",
          annotations: output.annotations,
          logprobs: { content: output.logprobs },
        });
      }
      for (const refusal of split(output.refusal)) deltas.push({ refusal });
      for (const [index, { id, name, args }] of output.calls.entries()) {
        deltas.push(call(index, name, "", id));
        for (const part of split(args)) deltas.push(more(index, part));
      }
      const receipt = { ...RECEIPT, finishReason };
      const whole = completion(
        {
          content: output.content,
          reasoning_content: output.reasoning,
          reasoning_details: output.details,
          annotations: output.annotations,
          refusal: output.refusal,
          tool_calls: output.calls.map(({ id, name, args }) => ({
            id,
            type: "function",
            function: { name, arguments: args },
          })),
        },
        { content: output.logprobs },
      );
      const account = streamed(deltas, receipt);
      expect(account.response).toEqual(json(whole, receipt));
      for (const [index, item] of account.response.output
        .filter(({ type }) => type.endsWith("call"))
        .entries()) {
        if (item.type !== "custom_tool_call") continue;
        const { name, args } = output.calls[index] ?? { name: "", args: "" };
        const value = JSON.parse(args) as { input?: unknown };
        expect(CUSTOM.has(name)).toBe(true);
        expect(item.input).toBe(typeof value.input === "string" ? value.input : args);
      }
    }),
  );
});

it("a Responses stream has numbered events of the SDK's types, whatever the deltas, and never throws", () => {
  const piece: fc.Arbitrary<Piece> = fc.oneof(
    words,
    fc.record({ content: words }),
    fc.record({ reasoning_content: words }),
    fc.record({ reasoning_details: fc.array(detail, { maxLength: 2 }) }),
    fc.record({ refusal: words }),
    fc
      .record({
        index: fc.nat(2),
        name: fc.constantFrom("plain", "patch", ""),
        args: fc.constantFrom('{"input":', '"x"', "}", "{}", "", " "),
      })
      .map(({ index, name, args }) => call(index, name, args)),
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      finish,
      fc.boolean(),
      (deltas, finishReason, fails) => {
        const { writer, text } = startStream(deltas);
        expect(() => eventsSoFar(text)).not.toThrow();
        const rest = fails
          ? writer.fail({ kind: "upstream_error" }, null)
          : writer.end({ ...RECEIPT, finishReason });
        const list = eventsOf(text + rest);
        expect(list.map((one) => one.sequence_number)).toEqual(list.map((_, index) => index));
      },
    ),
  );
});
