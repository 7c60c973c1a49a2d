import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { retryFailure } from "../../core/frame-reader.ts";
import type { ProviderCallOf, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { audioTokensMax, speechVoiceOf } from "../../core/speech.ts";
import { geminiFailureInside } from "./failure.ts";
import { BLOCK_REASONS, readMediaResponse } from "./images.ts";

export function geminiSpeechRequest({ body }: ProviderCallOf<"speech">): JsonObject {
  return {
    contents: [{ role: "user", parts: [{ text: body.input }] }],
    generationConfig: {
      responseModalities: ["AUDIO"],
      maxOutputTokens: audioTokensMax(body),
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: speechVoiceOf(body) } } },
    },
  };
}

/** The media type of OpenAI's `pcm`. Clients would play other sample rates at a wrong speed. */
const PCM_TYPE = /^audio\/(?:l16|pcm)\b(?=.*\brate=24000\b)/i;

/** The customer pays the tokens that Google reports for blocked text. */
export function readGeminiSpeechFields(raw: JsonObject, files: number, secrets: readonly string[]) {
  const failure = geminiFailureInside(raw, secrets);
  if (failure !== null) return failure;
  const { candidates, promptFeedback, usageMetadata: reportedUsage } = readMediaResponse(raw);
  const reasons = candidates.map(({ finishReason }) => finishReason);
  if (BLOCK_REASONS.test(promptFeedback.blockReason + reasons.join(" "))) {
    return refusal(BLOCKED_TEXT, reportedUsage);
  }
  if (files === 0) return refusal(NO_AUDIO, reportedUsage);
  const parts = candidates.flatMap(({ content }) => content.parts);
  const isPcm = parts.every(
    ({ inlineData: { mimeType: type } }) => type === "" || PCM_TYPE.test(type),
  );
  return isPcm ? { usage: usageOf(reportedUsage), fields: {} } : retryFailure("bad_audio");
}

type MediaUsage = ReturnType<typeof readMediaResponse>["usageMetadata"];

/** If Google doesn't count the audio, the held amount is charged. */
function usageOf({
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

function refusal(
  failureFields: Pick<ProviderFailure, "reason" | "message" | "code">,
  counted: MediaUsage,
): ProviderFailure {
  const isCounted = counted.promptTokenCount !== null;
  const usage = { audio_token: 0, ...usageOf(counted) };
  return {
    kind: "refused",
    param: "input",
    ...failureFields,
    ...(isCounted && { spent: { usage, output: 0 } }),
  };
}
