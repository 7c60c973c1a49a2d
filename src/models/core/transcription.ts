import * as z from "zod/mini";
import { FormFile } from "../../shared/http/form.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { NO_USAGE } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import {
  computeMaxAudioSeconds,
  UNBOUNDED_AUDIO_SECONDS as AUDIO_SECONDS_MAX,
} from "./audio-seconds.ts";
import { externalIdSchema } from "./core-request.ts";
import { dataUrlToFile, isDataUrl } from "./data-url.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest } from "./input-kind.ts";

const PROMPT_CHARACTERS_MAX = 4096;
/** Minimum billed seconds of a request (Groq). */
export const BILLED_SECONDS_MIN = 10;
const SECONDS_MAX = 1_000_000_000;
const MEDIA = ["audio", "video"];

export const audioFileSchema = z.custom<FormFile | string>((value: unknown) => {
  if (value instanceof FormFile) return value.bytes.length > 0;
  return typeof value === "string" && isDataUrl(value, MEDIA);
}, "must be an audio file of a form, or a data URL in base64");
const temperature = z.pipe(
  z.union([z.number(), z.string().check(z.regex(/^[01](\.\d{1,6})?$/))]),
  z.pipe(z.transform(Number), z.number().check(z.minimum(0), z.maximum(1))),
);
const flag = z.pipe(
  z.union([z.boolean(), z.enum(["true", "false"])]),
  z.transform((value) => value === true || value === "true"),
);
export const transcriptionBodySchema = z.strictObject({
  file: audioFileSchema,
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  language: z.optional(
    z.string().check(z.regex(/^[a-z]{2,3}$/, "must be a language such as 'en'")),
  ),
  prompt: z.optional(z.string().check(z.maxLength(PROMPT_CHARACTERS_MAX))),
  temperature: z.optional(temperature),
  response_format: z.optional(z.literal("json", { error: "must be 'json', the only format" })),
  stream: z.optional(flag),
  diarize: z.optional(z.enum(["false"], { error: "must be false, because its price isn't known" })),
  user: z.optional(externalIdSchema),
});

const UNKNOWN_LENGTH_MESSAGE =
  "The duration of this file can't be determined. Send WAV, MP3, FLAC or AAC, Ogg or WebM with Opus or Vorbis, or MP4 with AAC or Opus.";

export type TranscriptionBody = {
  readonly model: string;
  readonly file: FormFile;
  readonly secondsMax: number;
  readonly language?: string | undefined;
  readonly prompt?: string | undefined;
  readonly temperature?: number | undefined;
  readonly stream: boolean;
};

/** `isMistral` selects Mistral's response format. Mistral's SDKs always send `diarize`. */
type ParsedTranscription = ParsedInputRequest<TranscriptionBody> & { readonly isMistral: boolean };

export function parseTranscriptionRequest(value: object): Result<ParsedTranscription> {
  const parsed = parseInput(transcriptionBodySchema, value);
  if (!parsed.ok) return parsed;
  const { response_format: _format, diarize, file, stream = false, ...rest } = parsed.value.body;
  const sound = typeof file === "string" ? dataUrlToFile(file) : file;
  const secondsMax = computeMaxAudioSeconds(sound.bytes);
  if (secondsMax === AUDIO_SECONDS_MAX) return invalid(UNKNOWN_LENGTH_MESSAGE, "file");
  const body = { ...rest, file: sound, secondsMax, stream };
  return success({ body, user: parsed.value.user, isMistral: diarize !== undefined });
}

export const TRANSCRIPTION_REQUEST_RULES: InputKindRules<TranscriptionBody, "second"> = {
  size: ({ secondsMax }) => ({
    bound: 0,
    estimate: 0,
    likely: 0,
    units: { second: Math.max(BILLED_SECONDS_MIN, secondsMax) },
  }),
  needs: () => [],
  sizeAdvice: { advice: "Send a shorter file.", param: "file" },
};

/** Returns the usage in seconds, or null if it is invalid. `secondsMin` is the billed minimum. */
export function toSecondsUsage(seconds: unknown, secondsMin = 0): Usage | null {
  if (typeof seconds !== "number" || !(seconds > 0 && seconds < SECONDS_MAX)) return null;
  return { ...NO_USAGE, second: Math.max(secondsMin, Math.ceil(seconds)) };
}
