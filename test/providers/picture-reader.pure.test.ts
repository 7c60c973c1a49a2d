import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ImageReader, toPieceText } from "../../src/models/core/media-reader.ts";
import { imagesEndpoint } from "../../src/models/endpoints/images.ts";
import { IMAGE_PROTOCOL } from "../../src/models/protocols/chat/calls.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";

const MEGABYTE = 1024 * 1024;

function reader(): ImageReader {
  const body = { model: "m", prompt: "a", n: 1 };
  const { signal } = new AbortController();
  const call = { kind: "image", body, upstreamId: "m", stream: false, signal } as const;
  const imageReader = IMAGE_PROTOCOL.pieces?.(undefined, new Headers(), call);
  if (!(imageReader instanceof ImageReader)) throw new Error("it doesn't read in pieces");
  return imageReader;
}

/** Reads a response that arrives in chunks cut at these places. */
function read(text: string, cuts: readonly number[]): readonly StreamEvent[] {
  const bytes = new TextEncoder().encode(text);
  const places = [0, ...cuts.map((at) => at % bytes.length), bytes.length];
  const sorted = places.toSorted((a, b) => a - b);
  const imageReader = reader();
  return sorted.slice(1).flatMap((to, at) => imageReader.push(bytes.subarray(sorted[at], to)));
}

/** Joins the pieces of each image. */
function joined(events: readonly StreamEvent[]) {
  const pictures: string[] = [];
  for (const event of events) {
    if (event.kind !== "piece") continue;
    pictures[event.index - 1] = (pictures[event.index - 1] ?? "") + toPieceText(event.text);
  }
  const rest = events.filter(({ kind }) => kind !== "piece");
  return { pictures, rest };
}

const base64 = fc.stringMatching(/^[A-Za-z0-9+/]{1,60}={0,2}$/);
/** JSON that looks like parts of a response. */
const noise = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constantFrom(
    '"b64_json":"x"',
    '\\"data": "',
    "{",
    "}]",
    "\\",
    "\n",
    '"usage":{"output_tokens":1}',
  ),
);

describe("the reader of generated images", () => {
  it("returns the same images and usage wherever the response is split", () => {
    fc.assert(
      fc.property(
        fc.array(base64, { minLength: 1, maxLength: 4 }),
        noise,
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.boolean(),
        (pictures, prompt, cuts, isSpaced) => {
          const answer = {
            size: prompt,
            data: pictures.map((b64_json) => ({ revised_prompt: prompt, b64_json })),
            more: { usage: { output_tokens: 9 }, note: prompt },
            usage: { input_tokens: 3, output_tokens: 7 },
          };
          const text = isSpaced ? JSON.stringify(answer, null, 2) : JSON.stringify(answer);
          const got = joined(read(text, cuts));
          expect(got.pictures).toEqual(pictures);
          expect(got.rest).toMatchObject([
            { kind: "native", event: { size: prompt } },
            { kind: "usage", usage: { input: 3, image_token: 7, image: pictures.length } },
            { kind: "end" },
          ]);
        },
      ),
    );
  });

  it("finds the usage after 40 million bytes of an image without keeping these bytes", () => {
    const imageReader = reader();
    const encoder = new TextEncoder();
    const events = [...imageReader.push(encoder.encode('{"data":[{"b64_json":"'))];
    const piece = encoder.encode("A".repeat(MEGABYTE));
    let kept = 0;
    for (let bytes = 0; bytes < 40_000_000; bytes += MEGABYTE) {
      const [event] = imageReader.push(piece);
      expect(event?.kind === "piece" && event.text === piece).toBe(true);
      kept = Math.max(kept, imageReader.kept);
    }
    events.push(...imageReader.push(encoder.encode('"}],"usage":{"output_tokens":5}}')));
    expect(events).toMatchObject([
      { kind: "native" },
      { kind: "usage", usage: { image_token: 5 } },
      { kind: "end" },
    ]);
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(1000);
  });

  it("omits a long text next to the images", () => {
    const answer = { sealed: 's\\"'.repeat(2 * MEGABYTE), data: [{ b64_json: "QUJD" }] };
    const got = joined(read(JSON.stringify(answer), [7, 5_000_003, 70_001]));
    expect(got.pictures).toEqual(["QUJD"]);
    expect(got.rest.at(-1)).toEqual({ kind: "end" });
  });

  it("fails if the response without images is too large", () => {
    const answer = { many: Array.from({ length: 400_000 }, () => "ab"), data: [] };
    const { rest } = joined(read(JSON.stringify(answer), []));
    expect(rest).toMatchObject([{ kind: "error", failure: { reason: "event_too_large" } }]);
  });
});

it("the reader of generated images leaves the JSON incomplete if a response breaks off", () => {
  const at = { header: () => undefined, query: () => undefined };
  const parsed = imagesEndpoint.parse({ model: "m", prompt: "a" }, at);
  if (!parsed.ok || parsed.value.reply.kind !== "stream") {
    throw new Error("it isn't sent in pieces");
  }
  const head = { id: "i", model: "m", created: 1, promptTokens: 1, keeps: false };
  const writer = parsed.value.reply.stream(head);
  const piece = writer.piece?.({ kind: "piece", index: 1, text: "iVBO", isPartial: false });
  expect(piece).toBe('{"created":1,"data":[{"b64_json":"iVBO');
  expect(writer.fail({ kind: "upstream_error" }, null)).toBe("");
});
