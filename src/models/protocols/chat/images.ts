import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { responseFieldsOfImage, pixelsOf, ratioOf } from "../../core/images.ts";
import type { FormField } from "../../../shared/http/form.ts";
import { hasErrorField } from "../../core/chat-message.ts";
import type { ImageBody, ImageEdit } from "../../core/images.ts";
import { RequestForm } from "../../core/outgoing-body.ts";
import { ImageReader } from "../../core/picture-reader.ts";
import type { JsonObject } from "../../core/provider.ts";
import { shape } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { PlainCall } from "./profile.ts";

export const IMAGE_CALL: PlainCall<"image"> = {
  path: "/images/generations",
  otherPath: ({ body }) => (body.edit === undefined ? null : "/images/edits"),
  request: ({ body: { edit, ...body }, upstreamId }) => {
    const fields = { ...body, model: upstreamId };
    return edit === undefined ? fields : editForm(fields, edit);
  },
  answer: () => null,
  pieces: (secret) =>
    new ImageReader((raw) =>
      hasErrorField(raw)
        ? streamFailure(raw, secret)
        : { usage: usageOf(raw), fields: responseFieldsOfImage(raw) },
    ),
};

function editForm(fields: Omit<ImageBody, "edit">, { images, mask }: ImageEdit): RequestForm {
  const texts = Object.entries(fields).flatMap(([field, value]): FormField[] =>
    value === undefined ? [] : [[field, String(value)]],
  );
  const name = images.length === 1 ? "image" : "image[]"; // some hosts have no list
  const files = images.map((file): FormField => [name, file]);
  return new RequestForm([...texts, ...files, ...(mask === null ? [] : [["mask", mask] as const])]);
}

export const XAI_IMAGE_CALL: PlainCall<"image"> = {
  ...IMAGE_CALL,
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
  usage: shape({
    input_tokens: tokenCount,
    input_tokens_details: shape({ image_tokens: tokenCount }),
    output_tokens: tokenCount,
  }),
});

/** Reads the usage. Without details, the input images are charged as held. */
function usageOf(raw: JsonObject): Usage | null {
  const {
    input_tokens: input,
    input_tokens_details: of,
    output_tokens: output,
  } = answer(raw).usage;
  if ((input ?? 0) + (output ?? 0) === 0) return null;
  const { image_tokens: images } = of;
  return {
    ...NO_USAGE,
    input: Math.max(0, (input ?? 0) - (images ?? 0)),
    ...(images !== null && images > 0 && { input_image_token: images }),
    ...(output !== null && output > 0 && { image_token: output }),
  };
}
