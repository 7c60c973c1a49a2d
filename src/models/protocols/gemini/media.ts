import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { GEMINI_OUTPUT_TOKENS_MAX, parseImagePixels, findAspectRatio } from "../../core/images.ts";
import { addImage, createOutgoingBody } from "../../core/outgoing-body.ts";
import type { OutgoingBody } from "../../core/outgoing-body.ts";
import type {
  ImageCall,
  JsonObject,
  ProviderFailure,
  ProviderCallOfKind,
} from "../../core/provider.ts";
import { createListReader, createObjectReader, textOf } from "../../core/json-value.ts";
import { readCountOrZero, readTokenCount } from "../../core/openai-usage.ts";
import { findGeminiFailure } from "./failure.ts";
import { createRetryableFailure } from "../../core/frame-reader.ts";
import { computeMaxAudioTokens, getSpeechVoice } from "../../core/speech.ts";

const AREA_AND_SIZE = [
  [1_600_000, "1K"],
  [6_400_000, "2K"],
] as const;

export function toGeminiImageRequest({ body }: ImageCall): OutgoingBody {
  const pixels = parseImagePixels(body);
  const area = pixels === null ? 0 : pixels.width * pixels.height;
  const imageConfig = pixels !== null && {
    imageConfig: {
      aspectRatio: findAspectRatio(pixels),
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
      maxOutputTokens: GEMINI_OUTPUT_TOKENS_MAX,
      ...imageConfig,
    },
  };
  return createOutgoingBody(request, images);
}

const readMediaResponse = createObjectReader({
  candidates: createListReader(
    createObjectReader({
      finishReason: textOf,
      content: createObjectReader({
        parts: createListReader(
          createObjectReader({ inlineData: createObjectReader({ mimeType: textOf }) }),
        ),
      }),
    }),
  ),
  promptFeedback: createObjectReader({ blockReason: textOf }),
  usageMetadata: createObjectReader({
    promptTokenCount: readTokenCount,
    promptTokensDetails: createListReader(
      createObjectReader({ modality: textOf, tokenCount: readTokenCount }),
    ),
    candidatesTokenCount: readTokenCount,
    candidatesTokensDetails: createListReader(
      createObjectReader({ modality: textOf, tokenCount: readTokenCount }),
    ),
    thoughtsTokenCount: readCountOrZero,
  }),
});
const BLOCK_REASONS = /SAFETY|PROHIBITED|BLOCK|RECITATION|SPII|OTHER/;

type MediaUsage = ReturnType<typeof readMediaResponse>["usageMetadata"];

/**
 * Reads a response's usage and fields. The customer also pays for the tokens of a blocked request.
 */
export function readGeminiImageFields(
  raw: JsonObject,
  imageCount: number,
  secrets: readonly string[],
) {
  const failure = findGeminiFailure(raw, secrets);
  if (failure !== null) return failure;
  const { candidates, promptFeedback, usageMetadata: reportedUsage } = readMediaResponse(raw);
  const reason = promptFeedback.blockReason + (candidates[0]?.finishReason ?? "");
  if (BLOCK_REASONS.test(reason)) {
    return imageRefusal(BLOCKED_PROMPT, usageOf(withOutputCount(reportedUsage)));
  }
  const usage = usageOf(reportedUsage);
  if (imageCount === 0 && usage !== null) {
    return imageRefusal(NO_IMAGE, usageOf(withOutputCount(reportedUsage), true));
  }
  if (usage?.image_token !== 0) return { usage, fields: {} };
  const { image_token: _images, text_token: _texts, ...inputs } = usage;
  // Google didn't count the output, so the held amount is charged.
  return { usage: inputs, fields: {} };
}

function withOutputCount(counted: MediaUsage): MediaUsage {
  const { promptTokenCount: input, candidatesTokenCount: output } = counted;
  return input === null ? counted : { ...counted, candidatesTokenCount: output ?? 0 };
}

/** Returns the usage. Counts output without details as image tokens, which cost the most. */
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
  message: "The provider refused to generate this image.",
  code: "content_policy_violation",
};
const NO_IMAGE = { reason: "no_image", message: "The model returned no image." };

type RefusalFields = Pick<ProviderFailure, "reason" | "message" | "code">;

function imageRefusal(fields: RefusalFields, usage: ReturnType<typeof usageOf>): ProviderFailure {
  const spent = usage !== null && { spent: { usage: { ...usage, image: 0 }, output: 0 } };
  return { kind: "refused", param: "prompt", ...fields, ...spent };
}

export function toGeminiSpeechRequest({ body }: ProviderCallOfKind<"speech">): JsonObject {
  return {
    contents: [{ role: "user", parts: [{ text: body.input }] }],
    generationConfig: {
      responseModalities: ["AUDIO"],
      maxOutputTokens: computeMaxAudioTokens(body),
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: getSpeechVoice(body) } } },
    },
  };
}

/**
 * Matches the sample rate of OpenAI's `pcm`. Clients would play audio with another rate too fast or
 * too slowly.
 */
const PCM_TYPE = /^audio\/(?:l16|pcm)\b(?=.*\brate=24000\b)/i;

/** Reads a response's usage and fields. The customer also pays for the tokens of blocked text. */
export function readGeminiSpeechFields(
  raw: JsonObject,
  fileCount: number,
  secrets: readonly string[],
) {
  const failure = findGeminiFailure(raw, secrets);
  if (failure !== null) return failure;
  const { candidates, promptFeedback, usageMetadata: reportedUsage } = readMediaResponse(raw);
  const reasons = candidates.map(({ finishReason }) => finishReason);
  if (BLOCK_REASONS.test(promptFeedback.blockReason + reasons.join(" "))) {
    return speechRefusal(BLOCKED_TEXT, reportedUsage);
  }
  if (fileCount === 0) return speechRefusal(NO_AUDIO, reportedUsage);
  const parts = candidates.flatMap(({ content }) => content.parts);
  const isPcm = parts.every(
    ({ inlineData: { mimeType: type } }) => type === "" || PCM_TYPE.test(type),
  );
  return isPcm
    ? { usage: speechUsage(reportedUsage), fields: {} }
    : createRetryableFailure("bad_audio");
}

/** If Google doesn't count the audio, the held amount is charged. */
function speechUsage({
  promptTokenCount,
  candidatesTokenCount,
  thoughtsTokenCount,
}: MediaUsage): Usage {
  const usage = { ...NO_USAGE, input: promptTokenCount ?? 0 };
  const audio = candidatesTokenCount ?? 0;
  return audio === 0 ? usage : { ...usage, audio_token: audio + (thoughtsTokenCount ?? 0) };
}

const BLOCKED_TEXT = {
  reason: "blocked",
  message: "The provider refused to generate speech for this text.",
  code: "content_policy_violation",
};
const NO_AUDIO = { reason: "no_audio", message: "The model returned no audio." };

function speechRefusal(fields: RefusalFields, counted: MediaUsage): ProviderFailure {
  const usage = { audio_token: 0, ...speechUsage(counted) };
  const spent = counted.promptTokenCount !== null && { spent: { usage, output: 0 } };
  return { kind: "refused", param: "input", ...fields, ...spent };
}
