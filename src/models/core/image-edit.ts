import * as z from "zod/mini";
import { FormFile } from "../../shared/http/form.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { fileOfDataUrl, isDataUrl } from "./data-url.ts";
import { imageHeader } from "./image-header.ts";
import type { ImageHeader } from "./image-header.ts";
import { imageBody, RESERVE_PERCENT, withCount } from "./images.ts";
import type { ImageBody, ImageEdit } from "./images.ts";
import { parseInput } from "./input-kind.ts";
import type { ParsedInputRequest } from "./input-kind.ts";

const SOURCES_MAX = 16;
const SIDE_PIXELS_MAX = 16_384;
const PATCH_PIXELS = 32;
/**
 * Maximum input tokens of an image at gpt-image-1, the only model with a published rule: 65, 129
 * for each of up to 4 tiles, and 6,240 (developers.openai.com, images and vision).
 */
const SOURCE_TOKENS_MIN = 6_821;
const MEDIA = ["image"];

export const formFile = z.custom<FormFile>(
  (value: unknown) => value instanceof FormFile,
  "must be a file of a form",
);
const reference = z.strictObject({
  image_url: z
    .string()
    .check(z.refine((url) => isDataUrl(url, MEDIA), "must be a data URL of an image in base64")),
});
const { moderation: _moderation, ...shared } = imageBody.shape;
export const imageEditBody = z.strictObject({
  ...shared,
  image: z.optional(z.union([formFile, z.array(formFile)])),
  images: z.optional(z.array(reference)),
  mask: z.optional(z.union([formFile, reference])),
});

export function parseImageEdit(value: object): Result<ParsedInputRequest<ImageBody>> {
  const parsed = parseInput(imageEditBody, withValues(value));
  if (!parsed.ok) return parsed;
  const { image = [], images = [], mask, ...fields } = parsed.value.body;
  const counted = withCount({ body: fields, user: parsed.value.user });
  if (!counted.ok) return counted;
  const edit = editOf([...[image].flat(), ...images], mask ?? null);
  if (!edit.ok) return edit;
  return success({ ...counted.value, body: { ...counted.value.body, edit: edit.value } });
}

const NUMBERS: ReadonlySet<string> = new Set(["n", "output_compression", "partial_images"]);

/** Converts the numbers and booleans of a form, which are texts. */
function withValues(value: object): object {
  const fields = Object.entries(value).map(
    ([name, given]: [string, unknown]): [string, unknown] => {
      const isNumber = typeof given === "string" && /^\d{1,4}$/.test(given);
      if (isNumber && NUMBERS.has(name)) return [name, Number(given)];
      const isFlag = name === "stream" && (given === "true" || given === "false");
      return [name, isFlag ? given === "true" : given];
    },
  );
  return Object.fromEntries(fields);
}

type Source = FormFile | z.infer<typeof reference>;

function editOf(sources: readonly Source[], source: Source | null): Result<ImageEdit> {
  if (sources.length === 0) return invalid("'image' must have at least one image.", "image");
  if (sources.length > SOURCES_MAX) {
    return invalid(`'image' can have at most ${SOURCES_MAX} images.`, "image");
  }
  const mask = source === null ? success(null) : readSource(source, "mask");
  if (!mask.ok) return mask;
  const images: FormFile[] = [];
  let tokens = mask.value?.tokens ?? 0;
  for (const one of sources) {
    const image = readSource(one, "image");
    if (!image.ok) return image;
    images.push(image.value.file);
    tokens += image.value.tokens;
  }
  return success({ images, mask: mask.value?.file ?? null, tokens });
}

const FORMATS = { image: "PNG, JPEG or WebP", mask: "PNG" };

function readSource(
  source: Source,
  param: "image" | "mask",
): Result<{ readonly file: FormFile; readonly tokens: number }> {
  const { filename, bytes } = source instanceof FormFile ? source : fileOfDataUrl(source.image_url);
  const header = imageHeader(bytes);
  if (header === null || (param === "mask" && header.type !== "image/png")) {
    return invalid(`'${param}' must be a ${FORMATS[param]} file.`, param);
  }
  if (Math.max(header.width, header.height) > SIDE_PIXELS_MAX) {
    return invalid(`'${param}' can't exceed ${SIDE_PIXELS_MAX} pixels on a side.`, param);
  }
  return success({ file: new FormFile(filename, header.type, bytes), tokens: tokensOf(header) });
}

/** Returns the maximum input tokens of an image. The models count a token for each patch. */
function tokensOf({ width, height }: ImageHeader): number {
  const patches = Math.ceil(width / PATCH_PIXELS) * Math.ceil(height / PATCH_PIXELS);
  return Math.max(SOURCE_TOKENS_MIN, Math.ceil((patches * RESERVE_PERCENT) / 100));
}
