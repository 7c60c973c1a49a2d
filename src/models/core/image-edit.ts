import * as z from "zod/mini";
import { FormFile } from "../../shared/http/form.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { dataUrlToFile, isDataUrl } from "./data-url.ts";
import { imageBodySchema, IMAGE_HOLD_PERCENT, setDefaultImageCount } from "./images.ts";
import type { ImageBody, ImageEdit } from "./images.ts";
import { parseInput } from "./input-kind.ts";
import type { ParsedInputRequest } from "./input-kind.ts";

const SOURCES_MAX = 16;
const SIDE_PIXELS_MAX = 16_384;
const PATCH_PIXELS = 32;
/**
 * Minimum hold per image in input tokens. It is the most that gpt-image-1 counts, the only model
 * with a published rule: 65 + 4 x 129 + 6,240 (developers.openai.com, images and vision).
 */
const SOURCE_TOKENS_MIN = 6_821;
const MEDIA_KINDS = ["image"];

export const formFileSchema = z.custom<FormFile>(
  (value: unknown) => value instanceof FormFile,
  "must be a file of a form",
);
const reference = z.strictObject({
  image_url: z
    .string()
    .check(
      z.refine((url) => isDataUrl(url, MEDIA_KINDS), "must be a data URL of an image in base64"),
    ),
});
const { moderation: _moderation, ...shared } = imageBodySchema.shape;
export const imageEditBodySchema = z.strictObject({
  ...shared,
  image: z.optional(z.union([formFileSchema, z.array(formFileSchema)])),
  images: z.optional(z.array(reference)),
  mask: z.optional(z.union([formFileSchema, reference])),
});

export function parseImageEditRequest(value: object): Result<ParsedInputRequest<ImageBody>> {
  const parsed = parseInput(imageEditBodySchema, parseFormValues(value));
  if (!parsed.ok) return parsed;
  const { image = [], images = [], mask, ...fields } = parsed.value.body;
  const counted = setDefaultImageCount({ body: fields, user: parsed.value.user });
  if (!counted.ok) return counted;
  const edit = toImageEdit([...[image].flat(), ...images], mask ?? null);
  if (!edit.ok) return edit;
  return success({ ...counted.value, body: { ...counted.value.body, edit: edit.value } });
}

const NUMBER_FIELDS: ReadonlySet<string> = new Set(["n", "output_compression", "partial_images"]);

/** Converts a form's numbers and booleans, which arrive as strings. */
function parseFormValues(value: object): object {
  const fields = Object.entries(value).map(
    ([name, given]: [string, unknown]): [string, unknown] => {
      const isNumber = typeof given === "string" && /^\d{1,4}$/.test(given);
      if (isNumber && NUMBER_FIELDS.has(name)) return [name, Number(given)];
      const isFlag = name === "stream" && (given === "true" || given === "false");
      return [name, isFlag ? given === "true" : given];
    },
  );
  return Object.fromEntries(fields);
}

type Source = FormFile | z.infer<typeof reference>;

function toImageEdit(sources: readonly Source[], maskSource: Source | null): Result<ImageEdit> {
  if (sources.length === 0) return invalid("'image' must contain at least one image.", "image");
  if (sources.length > SOURCES_MAX) {
    return invalid(`'image' can contain at most ${SOURCES_MAX} images.`, "image");
  }
  const mask = maskSource === null ? success(null) : readSource(maskSource, "mask");
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
  const { filename, bytes } = source instanceof FormFile ? source : dataUrlToFile(source.image_url);
  const header = readImageHeader(bytes);
  if (header === null || (param === "mask" && header.type !== "image/png")) {
    return invalid(`'${param}' must be a ${FORMATS[param]} file.`, param);
  }
  if (Math.max(header.width, header.height) > SIDE_PIXELS_MAX) {
    return invalid(`'${param}' can't exceed ${SIDE_PIXELS_MAX} pixels on a side.`, param);
  }
  return success({ file: new FormFile(filename, header.type, bytes), tokens: tokensOf(header) });
}

function tokensOf({ width, height }: ImageHeader): number {
  const patches = Math.ceil(width / PATCH_PIXELS) * Math.ceil(height / PATCH_PIXELS);
  return Math.max(SOURCE_TOKENS_MIN, Math.ceil((patches * IMAGE_HOLD_PERCENT) / 100));
}

type ImageHeader = {
  readonly type: "image/png" | "image/jpeg" | "image/webp";
  readonly width: number;
  readonly height: number;
};

export function readImageHeader(bytes: Uint8Array): ImageHeader | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const found = pngHeader(view) ?? jpegHeader(view) ?? webpHeader(view);
    return found !== null && found.width > 0 && found.height > 0 ? found : null;
  } catch {
    return null; // The file ends within its header.
  }
}

const PNG = 0x89504e47;
const IHDR = 0x49484452;

function pngHeader(view: DataView): ImageHeader | null {
  if (view.getUint32(0) !== PNG || view.getUint32(12) !== IHDR) return null;
  return { type: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
}

const JPEG = 0xffd8;
/** JPEG markers from c0 to cf start a frame, except these markers. */
const NON_FRAME_MARKERS = new Set([0xc4, 0xc8, 0xcc]);

function jpegHeader(view: DataView): ImageHeader | null {
  if (view.getUint16(0) !== JPEG) return null;
  for (let at = 2; view.getUint8(at) === 0xff;) {
    const marker = view.getUint8(at + 1);
    if (marker >= 0xc0 && marker <= 0xcf && !NON_FRAME_MARKERS.has(marker)) {
      return { type: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    // These JPEG markers can't precede a frame.
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda)) return null;
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
  return null;
}

const RIFF = 0x52494646;
const WEBP = 0x57454250;
const LOSSY = 0x56503820;
const LOSSLESS = 0x5650384c;
const EXTENDED = 0x56503858;
const LOSSY_START = 0x9d012a;
const LOSSLESS_START = 0x2f;
const SIDE_BITS = 0x3fff;

function webpHeader(view: DataView): ImageHeader | null {
  if (view.getUint32(0) !== RIFF || view.getUint32(8) !== WEBP) return null;
  const type = "image/webp";
  switch (view.getUint32(12)) {
    case LOSSY: {
      if ((view.getUint32(22) & 0xffffff) !== LOSSY_START) return null;
      const side = (at: number): number => view.getUint16(at, true) & SIDE_BITS;
      return { type, width: side(26), height: side(28) };
    }
    case LOSSLESS: {
      if (view.getUint8(20) !== LOSSLESS_START) return null;
      const bits = view.getUint32(21, true);
      return { type, width: (bits & SIDE_BITS) + 1, height: ((bits >>> 14) & SIDE_BITS) + 1 };
    }
    case EXTENDED: {
      const side = (at: number): number => (view.getUint32(at, true) & 0xffffff) + 1;
      return { type, width: side(24), height: side(27) };
    }
    default:
      return null;
  }
}
