import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StreamMeter } from "../../src/models/requests/stream-meter.ts";
import type { Chunk, FunctionDelta } from "../../src/models/core/chunk.ts";
import { estimateTokens } from "../../src/shared/tokens.ts";
import { USAGE } from "./run-fixture.ts";

const text = (content: string, index = 0): Chunk => ({
  choices: [{ index, delta: { content }, finish_reason: null }],
});
const finish = (index: number, reason = "stop"): Chunk => ({
  choices: [{ index, delta: {}, finish_reason: reason }],
});
const call = (called: FunctionDelta): Chunk => ({
  choices: [
    { index: 0, delta: { tool_calls: [{ index: 0, function: called }] }, finish_reason: null },
  ],
});
const counted = (chunks: readonly Chunk[]): number => {
  const meter = new StreamMeter(1);
  for (const chunk of chunks) meter.addChunk(chunk);
  return meter.output;
};

describe("the meter of a stream's output", () => {
  it("counts a text equally however the text is split", () => {
    const words = fc.array(fc.constantFrom("word", "a", "chapter", "1234", "世界", ","), {
      minLength: 1,
      maxLength: 200,
    });
    fc.assert(
      fc.property(words, fc.integer({ min: 1, max: 40 }), (pieces, size) => {
        const whole = pieces.join(" ");
        const cut = whole.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
        const expected = estimateTokens(whole);
        const got = counted(cut.map((piece) => text(piece)));
        expect(Math.abs(got - expected)).toBeLessThanOrEqual(2 + 3 * Math.ceil(whole.length / 256));
      }),
    );
  });

  it("counts only a tool call's name and arguments, not the JSON around them", () => {
    const fragments = Array.from({ length: 100 }, () => call({ arguments: " word" }));
    const output = counted([call({ name: "write", arguments: "" }), ...fragments]);
    expect(output).toBeGreaterThanOrEqual(100);
    expect(output).toBeLessThan(110);
  });

  it("counts reasoning and refusals as output", () => {
    for (const field of ["reasoning_content", "refusal"]) {
      const delta = { [field]: "one two three" };
      const chunk = { choices: [{ index: 0, delta, finish_reason: null }] };
      expect(counted([chunk])).toBe(3);
    }
  });

  it("never counts too much, and detects a reached limit within 8 KiB of text", () => {
    const meter = new StreamMeter(1);
    let words = 0;
    while (!meter.exceeds(1000)) {
      meter.addChunk(text(" word"));
      words += 1;
    }
    expect(words).toBeGreaterThan(1000);
    expect(words).toBeLessThan(1000 + 2 * 8192);
    expect(meter.output).toBe(words);
  });

  it("finishes when every choice has a finish reason, and keeps the first reason", () => {
    const meter = new StreamMeter(2);
    meter.addChunk(finish(1, "length"));
    meter.addChunk(finish(1, "length"));
    expect(meter.finished).toBe(false);
    meter.addChunk(finish(0));
    expect([meter.finished, meter.finishReason]).toEqual([true, "length"]);
  });

  it("keeps the last usage that the provider reports", () => {
    const meter = new StreamMeter(1);
    meter.setUsage({ ...USAGE, output: 1 });
    meter.setUsage(USAGE);
    expect([meter.usage, meter.output]).toEqual([USAGE, 0]);
  });
});
