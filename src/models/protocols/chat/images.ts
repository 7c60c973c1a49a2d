import { NO_USAGE } from "../../../shared/usage.ts";
import { madeFields, pixelsOf, ratioOf } from "../../core/images.ts";
import { hasError } from "../../core/chat-message.ts";
import { PictureReader } from "../../core/picture-reader.ts";
import type { JsonObject } from "../../core/provider.ts";
import { shape } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { PlainCall } from "./profile.ts";

export const DRAWING: PlainCall<"image"> = {
  path: "/images/generations",
  request: ({ body, upstreamId }) => ({ ...body, model: upstreamId }),
  answer: () => null,
  pieces: (secret) =>
    new PictureReader((raw) => (hasError(raw) ? streamFailure(raw, secret) : factsOf(raw))),
};

export const XAI_DRAWING: PlainCall<"image"> = {
  ...DRAWING,
  request: ({ body, upstreamId }) => {
    const pixels = pixelsOf(body);
    const ratio = pixels === null ? null : ratioOf(pixels);
    return {
      model: upstreamId,
      prompt: body.prompt,
      n: body.n,
      response_format: "b64_json",
      resolution: "1k",
      ...(ratio !== null && { aspect_ratio: ratio }),
    };
  },
};

const answer = shape({
  usage: shape({ input_tokens: tokenCount, output_tokens: tokenCount }),
});

function factsOf(raw: JsonObject) {
  const { input_tokens: input, output_tokens: output } = answer(raw).usage;
  const isCounted = (input ?? 0) + (output ?? 0) > 0;
  return {
    usage: isCounted
      ? {
          ...NO_USAGE,
          input: input ?? 0,
          ...(output !== null && output > 0 && { image_token: output }),
        }
      : null,
    fields: madeFields(raw),
  };
}
