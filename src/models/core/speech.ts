import * as z from "zod/mini";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { utf8Bytes } from "../../shared/tokens.ts";
import type { Model, Route } from "../catalog/model.ts";
import { externalIdSchema } from "./core-request.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest, RouteNeed } from "./input-kind.ts";
import { PromptTokenCounter } from "./prompt-size.ts";
import type { PromptSize } from "./prompt-size.ts";

const INPUT_CHARACTERS_MAX = 4096;

export const AUDIO_MEDIA_TYPES = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
} as const;
type Format = keyof typeof AUDIO_MEDIA_TYPES;

const text = z.string().check(z.minLength(1), z.maxLength(INPUT_CHARACTERS_MAX));
const voice = z.string().check(z.minLength(1), z.maxLength(256));
export const speechBodySchema = z.strictObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  input: text,
  voice: z.optional(z.union([voice, z.strictObject({ id: voice })])),
  voice_id: z.optional(voice),
  stream: z.optional(z.boolean()),
  instructions: z.optional(text),
  response_format: z.optional(z.enum(["mp3", "opus", "aac", "flac", "wav", "pcm"])),
  speed: z.optional(z.number().check(z.minimum(0.25), z.maximum(4))),
  stream_format: z.optional(z.enum(["audio", "sse"])),
  user: z.optional(externalIdSchema),
});

type Fields = z.infer<typeof speechBodySchema>;
export type SpeechBody = Omit<
  Fields,
  "response_format" | "stream" | "user" | "voice" | "voice_id"
> & { readonly response_format: Format; readonly voice: NonNullable<Fields["voice"]> };

/** `isMistral` selects Mistral's format, which uses `voice_id`. */
type ParsedSpeech = ParsedInputRequest<SpeechBody> & { readonly isMistral: boolean };

export function parseSpeechRequest(value: object): Result<ParsedSpeech> {
  const parsed = parseInput(speechBodySchema, value);
  if (!parsed.ok) return parsed;
  const { voice: voiceName, voice_id: id, stream, response_format, ...rest } = parsed.value.body;
  const spoken = voiceName ?? id;
  if (spoken === undefined) return invalid("'voice' is missing.", "voice");
  if (voiceName !== undefined && id !== undefined) {
    return invalid("Send 'voice' or 'voice_id', not both.", "voice_id");
  }
  const isMistral = id !== undefined;
  if (stream !== undefined && !isMistral) {
    return invalid(
      "'stream' requires 'voice_id'. If you send 'voice', use 'stream_format' instead.",
      "stream",
    );
  }
  const body = {
    ...rest,
    voice: spoken,
    response_format: response_format ?? "mp3",
    ...(stream === true && { stream_format: "sse" as const }),
  };
  return success({ body, user: parsed.value.user, isMistral });
}

type SpeechFamily = {
  readonly models: RegExp;
  readonly formats: readonly Format[];
  readonly fields: readonly ("instructions" | "speed")[];
};
const FAMILIES: readonly SpeechFamily[] = [
  { models: /^voxtral-/, formats: ["mp3", "opus", "flac", "wav", "pcm"], fields: [] },
  { models: /^canopylabs\/orpheus-/, formats: ["wav"], fields: ["speed"] },
  { models: /^gemini-/, formats: ["wav", "pcm"], fields: [] },
  { models: /^eleven_/, formats: ["mp3", "opus", "wav", "pcm"], fields: [] },
];

function familyOf({ upstreamId }: Pick<Route, "upstreamId">): SpeechFamily | undefined {
  return FAMILIES.find(({ models }) => models.test(upstreamId));
}

const AUDIO_TOKENS_MIN = 2_048;
const AUDIO_TOKENS_MAX = 16_384;
const AUDIO_TOKENS_PER_BYTE = 8;
const PROMPT_OVERHEAD = 64;

/**
 * Returns the maximum audio tokens for a text, which is also Gemini's output cap. A second has 25
 * tokens and about 15 bytes of English. AUDIO_TOKENS_PER_BYTE allows for slow speech.
 */
export function computeMaxAudioTokens(body: SpokenText): number {
  const audioTokens = AUDIO_TOKENS_MIN + textBytes(body) * AUDIO_TOKENS_PER_BYTE;
  return Math.min(AUDIO_TOKENS_MAX, audioTokens);
}

type SpokenText = Pick<SpeechBody, "input" | "instructions">;

function textBytes({ input, instructions = "" }: SpokenText): number {
  return utf8Bytes(input) + utf8Bytes(instructions);
}

/**
 * The rules of speech. Providers don't define a character as a code point, UTF-16 unit or byte, so
 * each byte counts as one.
 */
export const SPEECH_REQUEST_RULES: InputKindRules<SpeechBody, "character" | "audio_token"> = {
  size: (body, model) => ({
    ...inputSize(body, model),
    units: { character: textBytes(body), audio_token: computeMaxAudioTokens(body) },
  }),
  needs: speechNeeds,
  sizeAdvice: { advice: "Send a shorter text.", param: "input" },
};

function inputSize({ input, instructions = "" }: SpokenText, model: Model): PromptSize {
  const tally = new PromptTokenCounter(model);
  if (model.routes.every(({ price }) => price.input === 0)) return tally.size();
  tally.addText(input);
  tally.addText(instructions);
  tally.overhead += PROMPT_OVERHEAD;
  return tally.size();
}

function speechNeeds(body: SpeechBody): readonly RouteNeed[] {
  const { response_format: format } = body;
  const fields = (["instructions", "speed"] as const).filter((field) => body[field] !== undefined);
  return [
    {
      param: "response_format",
      capability: `make audio in the format '${format}'`,
      isMetBy: (route) => familyOf(route)?.formats.includes(format) ?? true,
    },
    ...fields.map((field): RouteNeed => ({
      param: field,
      capability: `accept '${field}'`,
      isMetBy: (route) => familyOf(route)?.fields.includes(field) ?? true,
    })),
  ];
}

export function countCodePoints(spoken: string): number {
  return Array.from(spoken).length;
}

export function getSpeechVoice({ voice: voiceName }: SpeechBody): string {
  return typeof voiceName === "string" ? voiceName : voiceName.id;
}
