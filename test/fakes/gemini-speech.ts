import { toBase64 } from "../../src/models/core/data-url.ts";
import type { UpstreamCall } from "../contract/upstream.ts";

export const GEMINI_KEY = "gemini.canary.secret";
export const GEMINI_VOICE = "Kore";
export const GEMINI_PCM = "samples of 16 bits";
const TYPE = "audio/l16; rate=24000; channels=1";

/** Faults of a provider. Without any, the response is right. */
export type GeminiSpeechFaults = {
  readonly usage?: object | null;
  readonly finish?: string;
  readonly block?: string;
  readonly type?: string;
  readonly parts?: readonly string[];
};

/** The fields of Google's API that speech uses (ai.google.dev, speech generation). */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  "": ["contents", "generationConfig"],
  generationConfig: ["responseModalities", "maxOutputTokens", "speechConfig"],
};

/** Answers `generateContent` of a speech model with base64 PCM, or with an error of Google's. */
export function answerGeminiSpeech(call: UpstreamCall, answer: GeminiSpeechFaults = {}): Response {
  const { pathname } = new URL(call.url);
  if (call.headers["x-goog-api-key"] !== GEMINI_KEY) {
    return problem(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.");
  }
  if (!/^\/v1beta\/models\/gemini-[\w.-]+-tts:generateContent$/.test(pathname)) {
    return problem(404, "NOT_FOUND", "models/x is not found for API version v1beta.");
  }
  const { generationConfig: config } = call.body as { generationConfig: Config };
  const fields = { "": call.body, generationConfig: config };
  for (const [at, object] of Object.entries(fields)) {
    const unknown = Object.keys(object).find((name) => KNOWN[at]?.includes(name) !== true);
    if (unknown !== undefined) {
      return problem(400, "INVALID_ARGUMENT", `Unknown name "${unknown}" at '${at}'.`);
    }
  }
  const { voiceName } = config.speechConfig.voiceConfig.prebuiltVoiceConfig;
  if (config.responseModalities.join() !== "AUDIO") {
    return problem(400, "INVALID_ARGUMENT", "The model only supports audio output.");
  }
  if (voiceName !== GEMINI_VOICE) {
    return problem(400, "INVALID_ARGUMENT", `Voice name ${voiceName} is not supported.`);
  }
  return Response.json(spoken(answer));
}

type Config = {
  readonly responseModalities: readonly string[];
  readonly maxOutputTokens: number;
  readonly speechConfig: {
    readonly voiceConfig: { readonly prebuiltVoiceConfig: { readonly voiceName: string } };
  };
};

const USAGE = {
  promptTokenCount: 4,
  candidatesTokenCount: 50,
  totalTokenCount: 54,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 4 }],
  candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 50 }],
};

function spoken({
  usage = USAGE,
  finish = "STOP",
  block,
  type = TYPE,
  parts = [GEMINI_PCM],
}: GeminiSpeechFaults) {
  const encoder = new TextEncoder();
  const content = {
    role: "model",
    parts: parts.map((part) => ({
      inlineData: { mimeType: type, data: toBase64(encoder.encode(part)) },
    })),
  };
  return {
    ...(block === undefined
      ? { candidates: [{ content, finishReason: finish, index: 0 }] }
      : { promptFeedback: { blockReason: block } }),
    ...(usage !== null && { usageMetadata: usage }),
    modelVersion: "gemini-3.8-flash-tts",
  };
}

function problem(code: number, status: string, message: string): Response {
  return Response.json({ error: { code, message, status } }, { status: code });
}
