import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { GEMINI_OUTPUT_MAX, pixelsOf, aspectRatioOf } from "../../core/images.ts";
import { addImage, requestBodyOf } from "../../core/outgoing-body.ts";
import type { OutgoingBody } from "../../core/outgoing-body.ts";
import type { ImageCall, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { listReader, objectReader } from "../../core/shape.ts";
import { countOrZero, tokenCount } from "../../core/token-count.ts";
import { textOf } from "../../core/json-value.ts";
import { geminiFailureInside } from "./failure.ts";

const AREA_AND_SIZE = [
  [1_600_000, "1K"],
  [6_400_000, "2K"],
] as const;

export function geminiImageRequest({ body }: ImageCall): OutgoingBody {
  const pixels = pixelsOf(body);
  const area = pixels === null ? 0 : pixels.width * pixels.height;
  const imageConfig = pixels !== null && {
    imageConfig: {
      aspectRatio: aspectRatioOf(pixels),
      imageSize: AREA_AND_SIZE.find(([areaMax]) => area <= areaMax)?.[1] ?? "4K",
    },
  };
  const images = new Map<string, readonly Uint8Array[]>();
  const sources = (body.edit?.images ?? []).map(({ type, bytes }) => ({
    inlineData: { mimeType: type, data: addImage(images, [bytes]) },
  }));
  const request = {
    contents: [{ role: "user", parts: [...sources, { text: body.prompt }] }],
    generationConfig: {
      responseModalities: ["TEXT", "IMAGE"],
      maxOutputTokens: GEMINI_OUTPUT_MAX,
      ...imageConfig,
    },
  };
  return requestBodyOf(request, images);
}

export const readMediaResponse = objectReader({
  candidates: listReader(
    objectReader({
      finishReason: textOf,
      content: objectReader({
        parts: listReader(objectReader({ inlineData: objectReader({ mimeType: textOf }) })),
      }),
    }),
  ),
  promptFeedback: objectReader({ blockReason: textOf }),
  usageMetadata: objectReader({
    promptTokenCount: tokenCount,
    promptTokensDetails: listReader(objectReader({ modality: textOf, tokenCount })),
    candidatesTokenCount: tokenCount,
    candidatesTokensDetails: listReader(objectReader({ modality: textOf, tokenCount })),
    thoughtsTokenCount: countOrZero,
  }),
});
export const BLOCK_REASONS = /SAFETY|PROHIBITED|BLOCK|RECITATION|SPII|OTHER/;

type MediaUsage = ReturnType<typeof readMediaResponse>["usageMetadata"];

/** The customer pays the tokens that Google reports for a blocked request. */
export function readGeminiImageFields(
  raw: JsonObject,
  imageCount: number,
  secrets: readonly string[],
) {
  const failure = geminiFailureInside(raw, secrets);
  if (failure !== null) return failure;
  const { candidates, promptFeedback, usageMetadata: reportedUsage } = readMediaResponse(raw);
  const reason = promptFeedback.blockReason + (candidates[0]?.finishReason ?? "");
  if (BLOCK_REASONS.test(reason)) {
    return refusal(BLOCKED_PROMPT, usageOf(withOutputCount(reportedUsage)));
  }
  const usage = usageOf(reportedUsage);
  if (imageCount === 0 && usage !== null) {
    return refusal(NO_IMAGE, usageOf(withOutputCount(reportedUsage), true));
  }
  if (usage?.image_token !== 0) return { usage, fields: {} };
  const { image_token: _images, text_token: _texts, ...inputs } = usage;
  return { usage: inputs, fields: {} }; // Google didn't count the output, so the held amount is charged
}

function withOutputCount(counted: MediaUsage): MediaUsage {
  const { promptTokenCount: input, candidatesTokenCount: output } = counted;
  return input === null ? counted : { ...counted, candidatesTokenCount: output ?? 0 };
}

/** Counts all output without details as image tokens, which cost the most. */
function usageOf(counted: MediaUsage, isTextOnly = false) {
  const { promptTokenCount: input, candidatesTokenCount: output } = counted;
  if (input === null && output === null) return null;
  const images = imageTokens(counted.candidatesTokensDetails) ?? (isTextOnly ? 0 : output);
  const texts = Math.max(0, (output ?? 0) - (images ?? 0)) + (counted.thoughtsTokenCount ?? 0);
  return {
    ...inputUsage(counted),
    ...(images !== null && { image_token: images, text_token: texts }),
  };
}

function inputUsage({ promptTokenCount: input, promptTokensDetails: details }: MediaUsage): Usage {
  const sources = imageTokens(details) ?? 0;
  const usage = { ...NO_USAGE, input: Math.max(0, (input ?? 0) - sources) };
  return sources > 0 ? { ...usage, input_image_token: sources } : usage;
}

function imageTokens(details: MediaUsage["promptTokensDetails"]): number | null {
  return details.find(({ modality }) => modality === "IMAGE")?.tokenCount ?? null;
}

const BLOCKED_PROMPT = {
  reason: "blocked",
  message: "The provider refused to make this image.",
  code: "content_policy_violation",
};
const NO_IMAGE = { reason: "no_image", message: "The model returned no image." };

function refusal(
  failureFields: Pick<ProviderFailure, "reason" | "message" | "code">,
  usage: ReturnType<typeof usageOf>,
): ProviderFailure {
  return {
    kind: "refused",
    param: "prompt",
    ...failureFields,
    ...(usage !== null && { spent: { usage: { ...usage, image: 0 }, output: 0 } }),
  };
}
