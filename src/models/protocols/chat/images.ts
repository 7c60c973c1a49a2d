import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { responseFieldsOfImage, pixelsOf, aspectRatioOf } from "../../core/images.ts";
import type { FormField } from "../../../shared/http/form.ts";
import { hasErrorField } from "../../core/chat-message.ts";
import type { ImageBody, ImageEdit } from "../../core/images.ts";
import { addImage, BodyInPieces, RequestForm } from "../../core/outgoing-body.ts";
import { ImageReader } from "../../core/picture-reader.ts";
import type { JsonObject } from "../../core/provider.ts";
import { objectReader } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { CallProtocol } from "./profile.ts";

export const IMAGE_CALL: CallProtocol<"image"> = {
  path: "/images/generations",
  otherPath: ({ body }) => (body.edit === undefined ? null : "/images/edits"),
  request: ({ body: { edit, ...body }, upstreamId }) => {
    const fields = { ...body, model: upstreamId };
    return edit === undefined ? fields : editForm(fields, edit);
  },
  convertResponse: () => null,
  pieces: (secret) => createReader(secret, readImageUsage),
};

function createReader(
  secret: string | undefined,
  readUsage: (raw: JsonObject) => Usage | null,
): ImageReader {
  return new ImageReader((raw) =>
    hasErrorField(raw)
      ? streamFailure(raw, secret)
      : { usage: readUsage(raw), fields: responseFieldsOfImage(raw) },
  );
}

function editForm(fields: Omit<ImageBody, "edit">, { images, mask }: ImageEdit): RequestForm {
  const texts = Object.entries(fields).flatMap(([field, value]): FormField[] =>
    value === undefined ? [] : [[field, String(value)]],
  );
  const name = images.length === 1 ? "image" : "image[]"; // some hosts don't accept a list
  const files = images.map((file): FormField => [name, file]);
  return new RequestForm([...texts, ...files, ...(mask === null ? [] : [["mask", mask] as const])]);
}

/** xAI's image API. xAI bills each input image but doesn't report their number. */
export const XAI_IMAGE_CALL: CallProtocol<"image"> = {
  ...IMAGE_CALL,
  pieces: (secret, _, { body: { edit } }) =>
    createReader(secret, (raw) => {
      const usage = readImageUsage(raw);
      return edit === undefined
        ? usage
        : { ...NO_USAGE, ...usage, input_image: edit.images.length };
    }),
  request: ({ body, upstreamId }) => {
    const pixels = pixelsOf(body);
    const ratio = pixels === null ? null : aspectRatioOf(pixels);
    const fields = {
      model: upstreamId,
      prompt: body.prompt,
      n: body.n,
      response_format: "b64_json",
      resolution: "1k",
      ...(ratio !== null && { aspect_ratio: ratio }),
    };
    return body.edit === undefined ? fields : xaiEdit(fields, body.edit);
  },
};

function xaiEdit(fields: JsonObject, { images }: ImageEdit): BodyInPieces {
  const files = new Map<string, readonly Uint8Array[]>();
  const [first, ...more] = images.map(({ type, bytes }) => ({
    type: "image_url",
    url: `data:${type};base64,${addImage(files, [bytes])}`,
  }));
  const sources = more.length === 0 ? { image: first } : { images: [first, ...more] };
  return new BodyInPieces(JSON.stringify({ ...fields, ...sources }), files);
}

const readImageFields = objectReader({
  usage: objectReader({
    input_tokens: tokenCount,
    input_tokens_details: objectReader({ image_tokens: tokenCount }),
    output_tokens: tokenCount,
  }),
});

/** Returns the usage. If it has no details, the gateway charges the input images as held. */
function readImageUsage(raw: JsonObject): Usage | null {
  const {
    input_tokens: input,
    input_tokens_details: details,
    output_tokens: output,
  } = readImageFields(raw).usage;
  if ((input ?? 0) + (output ?? 0) === 0) return null;
  const { image_tokens: imageTokens } = details;
  return {
    ...NO_USAGE,
    input: Math.max(0, (input ?? 0) - (imageTokens ?? 0)),
    ...(imageTokens !== null && imageTokens > 0 && { input_image_token: imageTokens }),
    ...(output !== null && output > 0 && { image_token: output }),
  };
}
