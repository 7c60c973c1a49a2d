import { describe, expect, it } from "vitest";
import { IMAGE_REQUEST_RULES } from "../../src/models/core/images.ts";
import type { ImageBody } from "../../src/models/core/images.ts";
import type { Model } from "../../src/models/catalog/model.ts";

const QUALITIES = ["low", "medium", "high", "xhigh", "max", "auto"] as const;
const SIZES = ["1024x1024", "3840x2160"];
const KNOWN = ["gpt-image-2", "gpt-image-2.5-flare"];

/** Returns the held tokens of one image at a provider's model. */
function heldTokens(upstreamId: string, fields: Partial<ImageBody>): number {
  const model = { routes: [{ upstreamId }] } as unknown as Model;
  return (
    IMAGE_REQUEST_RULES.size({ model: "m", prompt: "a", n: 1, ...fields }, model).units
      ?.image_token ?? 0
  );
}

describe("the hold for a generated image", () => {
  it.each(["gpt-image-1", "gpt-image-9", "images/gpt-image-2", "my-azure-deployment"])(
    "reserves at least the tokens that each known model uses for %s",
    (name) => {
      for (const quality of QUALITIES) {
        for (const size of SIZES) {
          const minTokens = Math.max(...KNOWN.map((known) => heldTokens(known, { quality, size })));
          expect(heldTokens(name, { quality, size }), quality + size).toBeGreaterThanOrEqual(
            minTokens,
          );
        }
      }
    },
  );

  it("covers the 408 tokens of gpt-image-1's wide images in low quality", () => {
    const wide = { quality: "low", size: "1536x1024" } as const;
    expect(heldTokens("gpt-image-1", wide)).toBeGreaterThanOrEqual(408);
  });
});
