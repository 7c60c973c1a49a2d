import * as z from "zod/mini";
import type { FormFile } from "../../shared/http/form.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { UnitOfCallKind } from "../../shared/kinds.ts";
import type { Model, Route, RouteLimits } from "../catalog/model.ts";
import { externalIdSchema } from "./core-request.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest, RouteNeed } from "./input-kind.ts";
import type { JsonObject } from "./json-value.ts";
import { PromptTokenCounter } from "./prompt-size.ts";

const PROMPT_CHARACTERS_MAX = 32_000;
const PROMPT_OVERHEAD = 64;
const IMAGES_MAX = 10;
const PARTIAL_IMAGES_MAX = 3;
const SIZE = /^(?:auto|[1-9]\d{1,3}x[1-9]\d{1,3})$/;

export const imageBodySchema = z.strictObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  prompt: z.string().check(z.minLength(1), z.maxLength(PROMPT_CHARACTERS_MAX)),
  n: z.optional(z.int().check(z.minimum(1), z.maximum(IMAGES_MAX))),
  size: z.optional(z.string().check(z.regex(SIZE, { error: "must be 'auto' or like 1024x1024" }))),
  quality: z.optional(z.enum(["auto", "low", "medium", "high", "xhigh", "max"])),
  background: z.optional(z.enum(["auto", "opaque", "transparent"])),
  output_format: z.optional(z.enum(["png", "jpeg", "webp"])),
  output_compression: z.optional(z.int().check(z.minimum(0), z.maximum(100))),
  moderation: z.optional(z.enum(["auto", "low"])),
  response_format: z.optional(z.literal("b64_json")),
  stream: z.optional(z.boolean()),
  partial_images: z.optional(z.int().check(z.minimum(0), z.maximum(PARTIAL_IMAGES_MAX))),
  user: z.optional(externalIdSchema),
});

type Fields = Omit<z.infer<typeof imageBodySchema>, "user">;
export type ImageBody = Omit<Fields, "response_format" | "n"> & {
  readonly n: number;
  readonly edit?: ImageEdit;
};
export type ImageEdit = {
  readonly images: readonly FormFile[];
  readonly mask: FormFile | null;
  /** Maximum input tokens of the images and the mask. */
  readonly tokens: number;
};

export function parseImageRequest(value: object): Result<ParsedInputRequest<ImageBody>> {
  const parsed = parseInput(imageBodySchema, value);
  return parsed.ok ? setDefaultImageCount(parsed.value) : parsed;
}

export function setDefaultImageCount({
  body,
  user: name,
}: ParsedInputRequest<Fields>): Result<ParsedInputRequest<ImageBody>> {
  const { response_format: _format, n = 1, ...rest } = body;
  if (rest.stream === true && n > 1) {
    return invalid("A stream returns only one image, so 'n' must be 1.", "n");
  }
  if (rest.stream !== true && rest.partial_images !== undefined) {
    return invalid("'partial_images' requires 'stream'.", "partial_images");
  }
  return success({ body: { ...rest, n }, user: name });
}

type ImagePixels = { readonly width: number; readonly height: number };

export function parseImagePixels({ size = "auto" }: Pick<ImageBody, "size">): ImagePixels | null {
  if (size === "auto") return null;
  const [width = 0, height = 0] = size.split("x").map(Number);
  return { width, height };
}

/** Maximum output tokens of an image by quality. `large` is for images above 2560x1440 pixels. */
type TokensByQuality = { readonly [Quality in string]?: readonly [small: number, large: number] };

type ImageFamily = {
  readonly fields: readonly (keyof ImageBody)[];
  readonly takes: (pixels: ImagePixels) => boolean;
  readonly tokens?: TokensByQuality;
  /** Maximum output tokens of an image at any quality, for models without `tokens`. */
  readonly tokensMax?: number;
  /** Whether output text is billed at its own price. */
  readonly countsText?: true;
  /**
   * The billing unit of input images. A route without a price for this unit can't edit images,
   * because input images would be free.
   */
  readonly sourceUnit: "input_image_token" | "input_image";
  readonly sourcesMax?: number;
  readonly hasMasks?: true;
};

const OPENAI_FIELDS = [
  "n",
  "quality",
  "background",
  "output_format",
  "output_compression",
  "moderation",
  "stream",
  "partial_images",
] as const;
const STEP = 16;
const RATIO_MAX = 3;
const SIDE_MAX = 3840;
const AREA_SMALL = 2560 * 1440;
const AREA_MAX = 3840 * 2160;

function acceptsOpenAiSize({ width, height }: ImagePixels): boolean {
  const [short, long] = width < height ? [width, height] : [height, width];
  const isSupportedSize = width % STEP === 0 && height % STEP === 0 && long <= short * RATIO_MAX;
  return isSupportedSize && long <= SIDE_MAX && width * height <= AREA_MAX;
}

const ASPECT_RATIOS = ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"];
const RATIO_TOLERANCE = 0.02;

export function findAspectRatio({ width, height }: ImagePixels): string | null {
  const isNearRatio = (ratio: string): boolean => {
    const [across = 1, down = 1] = ratio.split(":").map(Number);
    return Math.abs(width / height / (across / down) - 1) <= RATIO_TOLERANCE;
  };
  return ASPECT_RATIOS.find(isNearRatio) ?? null;
}

/**
 * The hold in percent of an image's published output tokens. Some square images exceed the
 * published number, and models add a few tokens.
 */
export const IMAGE_HOLD_PERCENT = 150;
const PARTIAL_TOKENS = 200;
const AREA_1K = 1_600_000;
/** The output cap of each request to Gemini. It limits reasoning, drafts and images together. */
export const GEMINI_OUTPUT_TOKENS_MAX = 16_384;
/**
 * Gemini's own default output cap. Servers with OpenAI's API that forward to Gemini use this cap.
 */
const GEMINI_UNCAPPED_MAX = 32_768;

/**
 * Output tokens of an image by size: a reseller's price for the size, divided by the price per
 * token (read on 2026-11-20).
 */
const GPT_2_5: TokensByQuality = {
  low: [205, 371],
  medium: [478, 865],
  high: [1_843, 3_336],
  xhigh: [3_276, 5_930],
  max: [7_370, 13_342],
};
const GPT_2: TokensByQuality = { low: [200, 400], medium: [1_767, 3_367], high: [7_033, 13_367] };
/**
 * Token counts for other models, such as gpt-image-1. `low`, multiplied by IMAGE_HOLD_PERCENT,
 * covers its 408 tokens.
 */
const GPT_DEFAULT: TokensByQuality = { ...GPT_2_5, ...GPT_2, low: [272, 400] };

const OPENAI = {
  fields: OPENAI_FIELDS,
  takes: acceptsOpenAiSize,
  sourceUnit: "input_image_token",
  hasMasks: true,
} as const;
/** Families of models that OpenAI's API serves. Some servers also serve Gemini with this API. */
const FAMILY_BY_NAME: readonly (readonly [models: RegExp, ImageFamily])[] = [
  [/^gpt-image-2(?:-|$)/, { ...OPENAI, tokens: GPT_2 }],
  [/^gpt-image-2\.5(?:-|$)/, { ...OPENAI, tokens: GPT_2_5 }],
  [/^gpt-image-/, { ...OPENAI, tokens: GPT_DEFAULT }],
  [/\bgemini-/, { ...OPENAI, takes: () => true, tokensMax: GEMINI_UNCAPPED_MAX }],
];
const DEFAULT_FAMILY: ImageFamily = { ...OPENAI, takes: () => true, tokens: GPT_DEFAULT };
const FAMILY_BY_API: Readonly<Record<NonNullable<RouteLimits["imageApi"]>, ImageFamily>> = {
  gemini: {
    fields: ["stream"],
    takes: (pixels) => findAspectRatio(pixels) !== null,
    tokensMax: GEMINI_OUTPUT_TOKENS_MAX,
    countsText: true,
    sourceUnit: "input_image_token",
  },
  xai: {
    fields: ["n", "stream"],
    takes: (pixels) => findAspectRatio(pixels) !== null && pixels.width * pixels.height <= AREA_1K,
    tokens: {},
    sourceUnit: "input_image",
    sourcesMax: 3,
  },
};

function familyOf({ upstreamId, limits }: Pick<Route, "upstreamId" | "limits">): ImageFamily {
  if (limits?.imageApi !== undefined) return FAMILY_BY_API[limits.imageApi];
  return FAMILY_BY_NAME.find(([models]) => models.test(upstreamId))?.[1] ?? DEFAULT_FAMILY;
}

export const IMAGE_REQUEST_RULES: InputKindRules<ImageBody, UnitOfCallKind<"image">> = {
  size: (body, model) => {
    const tally = new PromptTokenCounter(model);
    tally.addText(body.prompt);
    tally.overhead += PROMPT_OVERHEAD;
    return { ...tally.size(), units: imageUnits(body, model) };
  },
  needs: imageNeeds,
  sizeAdvice: { advice: "Request fewer images.", param: "n" },
};

function imageUnits(body: ImageBody, { routes }: Model) {
  const tokens = Math.max(0, ...routes.map((route) => outputTokensMax(body, familyOf(route))));
  const countsText = routes.some((route) => familyOf(route).countsText === true);
  return {
    image: body.n,
    image_token: tokens,
    text_token: countsText ? GEMINI_OUTPUT_TOKENS_MAX : 0,
    input_image_token: body.edit?.tokens ?? 0,
    input_image: body.edit?.images.length ?? 0,
  };
}

function outputTokensMax(body: ImageBody, { tokens, tokensMax: most = 0 }: ImageFamily): number {
  const { n, quality = "auto", partial_images: partials = 0 } = body;
  if (tokens === undefined) return n * most;
  const pixels = parseImagePixels(body);
  const at = pixels !== null && pixels.width * pixels.height <= AREA_SMALL ? 0 : 1;
  const requested = quality === "auto" ? Object.values(tokens) : [tokens[quality]];
  const tokensMax = Math.max(0, ...requested.map((row) => row?.[at] ?? 0));
  return n * Math.ceil((tokensMax * IMAGE_HOLD_PERCENT) / 100) + partials * PARTIAL_TOKENS;
}

function imageNeeds(body: ImageBody): readonly RouteNeed[] {
  const pixels = parseImagePixels(body);
  const needs = OPENAI_FIELDS.filter((field) => isRequested(body, field)).map(
    (field): RouteNeed => ({
      param: field,
      capability: `accept '${field}'`,
      isMetBy: (route) => familyOf(route).fields.includes(field),
    }),
  );
  const { quality = "auto", size = "auto" } = body;
  const isKnown = ({ tokens }: ImageFamily): boolean =>
    quality === "auto" || tokens === undefined || tokens[quality] !== undefined;
  return [
    ...(body.edit === undefined ? [] : editNeeds(body.edit)),
    ...needs,
    {
      param: "quality",
      capability: `make images of the quality '${quality}'`,
      isMetBy: (route) => isKnown(familyOf(route)),
    },
    {
      param: "size",
      capability: `make images of the size ${size}`,
      isMetBy: (route) => pixels === null || familyOf(route).takes(pixels),
    },
  ];
}

function editNeeds({ images: { length }, mask }: ImageEdit): readonly RouteNeed[] {
  const edits: RouteNeed = {
    param: "model",
    capability: "edit images",
    isMetBy: (route) => route.price.units?.[familyOf(route).sourceUnit] !== undefined,
  };
  const masks: RouteNeed = {
    param: "mask",
    capability: "accept a mask",
    isMetBy: (route) => familyOf(route).hasMasks === true,
  };
  const several: RouteNeed = {
    param: "image",
    capability: `edit ${length} images`,
    isMetBy: (route) => length <= (familyOf(route).sourcesMax ?? length),
  };
  return mask === null ? [edits, several] : [edits, several, masks];
}

function isRequested(body: ImageBody, field: (typeof OPENAI_FIELDS)[number]): boolean {
  const value = body[field];
  return value !== undefined && value !== "auto" && value !== DEFAULTS[field];
}

const DEFAULTS: Partial<ImageBody> = { n: 1, stream: false, partial_images: 0 };

const ECHOED_FIELDS = ["background", "output_format", "quality", "size"] as const;

export function pickImageResponseFields(raw: JsonObject): JsonObject {
  const fields = ECHOED_FIELDS.filter((field) => typeof raw[field] === "string");
  return Object.fromEntries(fields.map((field) => [field, raw[field]]));
}
