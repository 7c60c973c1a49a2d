import { AudioFileReader, WavReader } from "../core/media-reader.ts";
import { findBaseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider, ProviderConfig } from "../core/built-in.ts";
import {
  createHttpProvider,
  sendPostRequest,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { isObject, parseObject, textOf } from "../core/json-value.ts";
import type { ProviderFailure } from "../core/provider.ts";
import { countCodePoints, getSpeechVoice } from "../core/speech.ts";
import { parseHttpFailure } from "../core/upstream-failure.ts";

const ID = "elevenlabs";
const SECRET = "ELEVENLABS_API_KEY";
const BASE_URL = "ELEVENLABS_BASE_URL";
const VOICES = "ELEVENLABS_VOICES";
/** Voices that every account has (category `premade`), from public lists of 2026. */
const STANDARD_VOICES =
  "CwhRBWXzGAHq8TQ4Fs17 EXAVITQu4vr4xnSDxMaL FGY2WhTYpPnrIDTdsKH5 IKne3meq5aSn9XLyUdCD " +
  "JBFqnCBsd6RMkjVDRZzb N2lVS1w4EtoT3dr4eOWO SAz9YHcvj6GT2YYXdXww SOYHLrjzK2X1ezoPC6cr " +
  "TX3LPaxmHKxFdv7VOQHJ Xb7hH8MSUJpSbSDYk0k2 XrExE9yKIg1WjnnlVkGX bIHbv24MWmeRgasZH58o " +
  "cgSgspJ2msm6clMCkdW9 cjVigY5qzO86Huf0OWal hpp4J3VqNfWAUOO0d1Us iP95p4xoKVk53GoZ742B " +
  "nPczCjzI2devNBz1zQrb onwK4e9ZLuTAKqWW03F9 pFZP5JQG7iQjIQuC4Bku pNInz6obpgDQGcFmaJgB " +
  "pqHfZKP75CvOlQylNhV4";
const OUTPUT_FORMAT_BY_NAME: Readonly<Record<string, string>> = {
  mp3: "mp3_44100_128",
  opus: "opus_48000_64",
  pcm: "pcm_24000",
  wav: "pcm_24000",
};
/** Matches a list of voice IDs. Characters outside this pattern could change the URL's path. */
const VOICE_ID_LIST = /^\w+(?:[\s,]+\w+)*$/;
const UNKNOWN_VOICE: ProviderFailure = {
  kind: "refused",
  reason: "voice",
  message: "This voice isn't available. Send the ID of one of the provider's standard voices.",
  param: "voice",
};

/** ElevenLabs' text to speech. Its host guarantees no region. */
export const ELEVENLABS_PROVIDER: BuiltInProvider = {
  id: ID,
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: () => ["global"],
  problems: (config) => [
    ...findBaseUrlProblems(config, BASE_URL),
    ...(VOICE_ID_LIST.test(allowedVoices(config))
      ? []
      : [{ variable: VOICES, problem: "must be IDs of voices, separated by commas" }]),
  ],
  build: (config) => {
    const baseUrl = config.secret(BASE_URL) ?? "https://api.elevenlabs.io/v1";
    const voices = new Set(allowedVoices(config).split(/[\s,]+/));
    return createHttpProvider(
      createProtocol(removeTrailingSlashes(baseUrl), config.secret(SECRET) ?? "", voices),
    );
  },
};

/**
 * Returns the voices that customers can use. Other voices may be the operator's own or cost more.
 */
function allowedVoices(config: ProviderConfig): string {
  return config.secret(VOICES)?.trim() ?? STANDARD_VOICES;
}

function createProtocol(
  base: string,
  secret: string,
  voices: ReadonlySet<string>,
): ProviderHandlers {
  return {
    id: ID,
    streamType: "",
    speech: {
      send: async (call) => {
        const { body, upstreamId } = call;
        const voice = getSpeechVoice(body);
        if (!voices.has(voice)) return UNKNOWN_VOICE;
        const format = OUTPUT_FORMAT_BY_NAME[body.response_format] ?? "";
        return sendPostRequest(call, {
          url: `${base}/text-to-speech/${voice}/stream?output_format=${format}`,
          headers: { "xi-api-key": secret },
          body: JSON.stringify({ text: body.input, model_id: upstreamId }),
        });
      },
      convertResponse: () => null,
      pieces: ({ body }, headers) => {
        const file = new AudioFileReader(billedCharacters(headers, body.input));
        return body.response_format === "wav" ? new WavReader(file) : file;
      },
    },
    failureInBody: () => null,
    failure: (status, headers, bodyText) => failureOf(status, headers, bodyText, secret),
  };
}

/**
 * Returns the reported characters, but at least the text's code points. For cheaper models,
 * ElevenLabs can report credits, which are fewer.
 */
function billedCharacters(headers: Headers, text: string) {
  const reported = ["character-cost", "x-character-count"].map((name) => Number(headers.get(name)));
  const highest = Math.max(...reported.filter(Number.isSafeInteger));
  return highest > 0 ? { character: Math.max(highest, countCodePoints(text)) } : null;
}

function failureOf(
  status: number,
  headers: Headers,
  bodyText: string,
  secret: string,
): ProviderFailure {
  const detail = parseObject(bodyText)?.["detail"];
  if (!isObject(detail)) return parseHttpFailure(status, headers, bodyText, secret);
  const code = textOf(detail["code"]) || textOf(detail["status"]);
  if (code.startsWith("voice_")) return { ...UNKNOWN_VOICE, reason: String(status) };
  return parseHttpFailure(status, headers, JSON.stringify({ error: { ...detail, code } }), secret);
}
