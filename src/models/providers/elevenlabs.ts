import { AudioFile, WavFile } from "../core/audio-reader.ts";
import { baseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import { httpProvider, post, trimmedUrl } from "../core/http-provider.ts";
import type { ProviderProtocol } from "../core/http-provider.ts";
import { isObject, parseObject, textOf } from "../core/json-value.ts";
import type { Provider, ProviderFailure } from "../core/provider.ts";
import { codePoints, speechVoiceOf } from "../core/speech.ts";
import { httpFailure } from "../core/upstream-failure.ts";

const ID = "elevenlabs";
const SECRET = "ELEVENLABS_API_KEY";
const BASE_URL = "ELEVENLABS_BASE_URL";
const FORMATS: Readonly<Record<string, string>> = {
  mp3: "mp3_44100_128",
  opus: "opus_48000_64",
  pcm: "pcm_24000",
  wav: "pcm_24000",
};
/** Other characters could name another path of the host. */
const VOICE = /^\w+$/;
const NO_VOICE: ProviderFailure = {
  kind: "refused",
  reason: "voice",
  message: "This voice doesn't exist at the model's provider. Send the ID of a voice.",
  param: "voice",
};

/** ElevenLabs' text to speech. Its host guarantees no region. */
export const ELEVENLABS: BuiltInProvider = {
  id: ID,
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: () => ["global"],
  problems: (config) => baseUrlProblems(config, BASE_URL),
  build: (config) => {
    const baseUrl = config.secret(BASE_URL) ?? "https://api.elevenlabs.io/v1";
    return elevenLabs(baseUrl, config.secret(SECRET) ?? "");
  },
};

export function elevenLabs(baseUrl: string, secret: string): Provider {
  return httpProvider(wireOf(trimmedUrl(baseUrl), secret));
}

function wireOf(base: string, secret: string): ProviderProtocol {
  return {
    id: ID,
    streamType: "",
    speech: {
      ask: async (call) => {
        const { body, upstreamId } = call;
        const voice = speechVoiceOf(body);
        if (!VOICE.test(voice)) return NO_VOICE;
        const format = FORMATS[body.response_format] ?? "";
        return post(call, {
          url: `${base}/text-to-speech/${voice}/stream?output_format=${format}`,
          headers: { "xi-api-key": secret },
          body: JSON.stringify({ text: body.input, model_id: upstreamId }),
        });
      },
      answer: () => null,
      pieces: ({ body }, headers) => {
        const file = new AudioFile(countIn(headers, body.input));
        return body.response_format === "wav" ? new WavFile(file) : file;
      },
    },
    failureInside: () => null,
    failure: (status, headers, bodyText) => failureOf(status, headers, bodyText, secret),
  };
}

/**
 * Returns the reported characters, but at least the text's code points. For cheaper models, the
 * headers can have credits, which are fewer than the characters that the price is for.
 */
function countIn(headers: Headers, text: string) {
  const reported = ["character-cost", "x-character-count"].map((name) => Number(headers.get(name)));
  const most = Math.max(...reported.filter(Number.isSafeInteger));
  return most > 0 ? { character: Math.max(most, codePoints(text)) } : null;
}

/** Converts `detail`, which is an object with a code, or a list of invalid fields. */
function failureOf(
  status: number,
  headers: Headers,
  bodyText: string,
  secret: string,
): ProviderFailure {
  const detail = parseObject(bodyText)?.["detail"];
  if (!isObject(detail)) return httpFailure(status, headers, bodyText, secret);
  const code = textOf(detail["code"]) || textOf(detail["status"]);
  if (code.startsWith("voice_")) return { ...NO_VOICE, reason: String(status) };
  return httpFailure(status, headers, JSON.stringify({ error: { ...detail, code } }), secret);
}
