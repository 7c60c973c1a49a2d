import { NO_USAGE } from "../../../shared/usage.ts";
import { listOf, isObject, objectOf, createObjectReader, textOf } from "../../core/json-value.ts";
import { countModerationInputs } from "../../core/moderation.ts";
import type { ModerationBody } from "../../core/moderation.ts";
import type { CallProtocol } from "./profile.ts";
import { readTokenCount } from "../../core/openai-usage.ts";
import { parseRankedResponse, toRerankUsage } from "../../core/ranked.ts";
import type { Usage } from "../../../shared/usage.ts";
import { pickImageResponseFields, parseImagePixels, findAspectRatio } from "../../core/images.ts";
import type { FormField } from "../../../shared/http/form.ts";
import { hasErrorField } from "../../core/chat-message.ts";
import type { ImageBody, ImageEdit } from "../../core/images.ts";
import { addImage, BodyWithDownloadedImages, MultipartForm } from "../../core/outgoing-body.ts";
import {
  ImageReader,
  AudioFileReader,
  JsonAudioReader,
  toAudioEvents,
  NO_AUDIO_FAILURE,
  toTranscriptionEvents,
} from "../../core/media-reader.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { parseStreamFailure } from "../../core/upstream-failure.ts";
import {
  createFailureEvents,
  STREAM_END_EVENT,
  FrameReader,
  createSseReader,
} from "../../core/frame-reader.ts";
import { getSpeechVoice } from "../../core/speech.ts";
import { toSecondsUsage } from "../../core/transcription.ts";

export const MODERATION_PROTOCOL: CallProtocol<"moderation"> = {
  path: "/moderations",
  request: ({ body: { input }, upstreamId }) => ({ model: upstreamId, input: joinTexts(input) }),
  convertResponse: ({ results: rawResults }, { body }) => {
    const results = listOf(rawResults).filter(isObject);
    if (results.length !== countModerationInputs(body)) return null;
    if (!results.every(({ categories }) => isObject(categories))) return null;
    const flagged = results.map((result) => {
      const isFlagged = Object.values(objectOf(result["categories"])).includes(true);
      return Object.assign({ flagged: isFlagged }, result);
    });
    return { body: { results: flagged }, usage: NO_USAGE };
  },
};

/** Joins text parts, because Mistral doesn't accept lists of parts. */
function joinTexts(input: ModerationBody["input"]): ModerationBody["input"] {
  const texts = [input].flat().flatMap((one) => {
    return typeof one !== "string" && one.type === "text" ? [one.text] : [];
  });
  return texts.length > 0 && texts.length === input.length ? texts.join("\n") : input;
}

const readCounts = createObjectReader({
  usage_info: createObjectReader({
    pages_processed: readTokenCount,
    doc_size_bytes: readTokenCount,
  }),
});

export const OCR_PROTOCOL: CallProtocol<"ocr"> = {
  path: "/ocr",
  request: ({ body, upstreamId }) => ({ ...body, model: upstreamId }),
  convertResponse: (raw) => {
    const { pages } = raw;
    if (!Array.isArray(pages) || !pages.every((page) => isPage(page))) return null;
    const { pages_processed: page, doc_size_bytes } = readCounts(raw).usage_info;
    const isCounted = page !== null && (page > 0 || pages.length === 0);
    return { body: { pages, doc_size_bytes }, usage: isCounted ? { ...NO_USAGE, page } : null };
  },
};

function isPage(page: unknown): boolean {
  const { markdown } = objectOf(page);
  return typeof markdown === "string";
}

const responseReader = createObjectReader({
  results: listOf,
  data: listOf,
  usage: createObjectReader({ total_tokens: readTokenCount }),
});

/**
 * Returns the protocol of POST /rerank. Voyage uses `top_k` and `data`. Jina and others use `top_n`
 * and `results`.
 */
export function createRerankProtocol(limitField: "top_k" | "top_n"): CallProtocol<"rerank"> {
  return {
    path: "/rerank",
    request: ({ body: { query, documents, top_n: topN }, upstreamId }) => {
      return { model: upstreamId, query, documents, [limitField]: topN, return_documents: false };
    },
    convertResponse: (raw, { body }) => {
      const { results, data, usage } = responseReader(raw);
      const counted = toRerankUsage({ searchUnits: null, tokens: usage.total_tokens });
      return parseRankedResponse([...results, ...data], body, counted);
    },
  };
}

/** The protocol of OpenAI's image endpoints. */
export const IMAGE_PROTOCOL: CallProtocol<"image"> = {
  path: "/images/generations",
  otherPath: ({ body }) => (body.edit === undefined ? null : "/images/edits"),
  request: ({ body: { edit, ...body }, upstreamId }) => {
    const fields = { ...body, model: upstreamId };
    return edit === undefined ? fields : editForm(fields, edit);
  },
  convertResponse: () => null,
  pieces: (secret) => createReader(secret, readImageUsage),
};

function createReader(
  secret: string | undefined,
  readUsage: (raw: JsonObject) => Usage | null,
): ImageReader {
  return new ImageReader((raw) =>
    hasErrorField(raw)
      ? parseStreamFailure(raw, secret)
      : { usage: readUsage(raw), fields: pickImageResponseFields(raw) },
  );
}

function editForm(fields: Omit<ImageBody, "edit">, { images, mask }: ImageEdit): MultipartForm {
  const texts = Object.entries(fields).flatMap(([field, value]): FormField[] =>
    value === undefined ? [] : [[field, String(value)]],
  );
  const name = images.length === 1 ? "image" : "image[]"; // Some hosts don't accept an image list.
  const files = images.map((file): FormField => [name, file]);
  return new MultipartForm([
    ...texts,
    ...files,
    ...(mask === null ? [] : [["mask", mask] as const]),
  ]);
}

/**
 * xAI's image API. xAI bills each input image without reporting their number, so the gateway counts
 * them.
 */
export const XAI_IMAGE_PROTOCOL: CallProtocol<"image"> = {
  ...IMAGE_PROTOCOL,
  pieces: (secret, _, { body: { edit } }) =>
    createReader(secret, (raw) => {
      const usage = readImageUsage(raw);
      return edit === undefined
        ? usage
        : { ...NO_USAGE, ...usage, input_image: edit.images.length };
    }),
  request: ({ body, upstreamId }) => {
    const pixels = parseImagePixels(body);
    const ratio = pixels === null ? null : findAspectRatio(pixels);
    const fields = {
      model: upstreamId,
      prompt: body.prompt,
      n: body.n,
      response_format: "b64_json",
      resolution: "1k",
      ...(ratio !== null && { aspect_ratio: ratio }),
    };
    return body.edit === undefined ? fields : xaiEdit(fields, body.edit);
  },
};

function xaiEdit(fields: JsonObject, { images }: ImageEdit): BodyWithDownloadedImages {
  const files = new Map<string, readonly Uint8Array[]>();
  const [first, ...more] = images.map(({ type, bytes }) => ({
    type: "image_url",
    url: `data:${type};base64,${addImage(files, [bytes])}`,
  }));
  const sources = more.length === 0 ? { image: first } : { images: [first, ...more] };
  return new BodyWithDownloadedImages(JSON.stringify({ ...fields, ...sources }), files);
}

const readImageFields = createObjectReader({
  usage: createObjectReader({
    input_tokens: readTokenCount,
    input_tokens_details: createObjectReader({ image_tokens: readTokenCount }),
    output_tokens: readTokenCount,
  }),
});

/** Reads image usage. Input images without a token count cost the held amount. */
function readImageUsage(raw: JsonObject): Usage | null {
  const {
    input_tokens: input,
    input_tokens_details: details,
    output_tokens: output,
  } = readImageFields(raw).usage;
  if ((input ?? 0) + (output ?? 0) === 0) return null;
  const { image_tokens: imageTokens } = details;
  return {
    ...NO_USAGE,
    input: Math.max(0, (input ?? 0) - (imageTokens ?? 0)),
    ...(imageTokens !== null && imageTokens > 0 && { input_image_token: imageTokens }),
    ...(output !== null && output > 0 && { image_token: output }),
  };
}

/** The protocol of OpenAI-compatible speech endpoints. */
export const SPEECH_PROTOCOL: CallProtocol<"speech"> = {
  path: "/audio/speech",
  request: ({ body: { stream_format: _format, ...body }, upstreamId }) => {
    return { ...body, model: upstreamId };
  },
  convertResponse: () => null,
  pieces: (secret, headers) => {
    const type = headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) {
      return new JsonAudioReader((raw, files) => {
        if (hasErrorField(raw)) return parseStreamFailure(raw, secret);
        return files === 0 ? NO_AUDIO_FAILURE : NO_USAGE_OR_FIELDS;
      });
    }
    if (type.startsWith("text/event-stream")) return createSseReader(new AudioEvents(secret));
    return new AudioFileReader();
  },
};

export const MISTRAL_SPEECH_PROTOCOL: CallProtocol<"speech"> = {
  ...SPEECH_PROTOCOL,
  request: ({ body, upstreamId }) => ({
    model: upstreamId,
    input: body.input,
    voice_id: getSpeechVoice(body),
    response_format: body.response_format,
    stream: body.stream_format === "sse",
  }),
};

const NO_USAGE_OR_FIELDS = { usage: null, fields: {} };

/** Reads the `speech.audio.*` events of Mistral (field `audio_data`) and OpenAI (field `audio`). */
class AudioEvents extends FrameReader {
  #hasAudio = false;
  isFinished = false;

  protected convertFrame(raw: JsonObject): StreamEvent[] {
    const { type, audio_data: data, audio } = raw;
    if (hasErrorField(raw)) return createFailureEvents(parseStreamFailure(raw, this.secret));
    if (type === "speech.audio.delta") {
      const events = toAudioEvents(textOf(data) || textOf(audio));
      this.#hasAudio ||= events.length > 0;
      return events;
    }
    if (type !== "speech.audio.done") return [];
    this.isFinished = true;
    return this.#hasAudio ? [STREAM_END_EVENT] : createFailureEvents(NO_AUDIO_FAILURE);
  }
}

type TranscriptionOptions = {
  readonly format?: "json" | "verbose_json";
  readonly canStream?: true;
  readonly secondsMin?: number;
  readonly acceptsPrompt?: true;
};

export function createTranscriptionProtocol(
  options: TranscriptionOptions,
): CallProtocol<"transcription"> {
  const { format, canStream: streams, secondsMin: least = 0, acceptsPrompt: prompts } = options;
  return {
    path: "/audio/transcriptions",
    request: ({ body, upstreamId, stream, onDropped }) => {
      const { file, language, prompt, temperature } = body;
      if (prompt !== undefined && prompts !== true) onDropped?.(["prompt"]);
      const fields: Readonly<Record<string, FormField[1] | undefined>> = {
        model: upstreamId,
        response_format: format,
        language,
        prompt: prompts === true ? prompt : undefined,
        temperature: temperature?.toString(),
        stream: stream && streams === true ? "true" : undefined,
        file,
      };
      return new MultipartForm(
        Object.entries(fields).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, value] as const],
        ),
      );
    },
    convertResponse: (raw) => {
      const { text } = raw;
      return typeof text === "string" ? { body: { text }, usage: readSeconds(raw, least) } : null;
    },
    events: toTranscriptionEvents,
    reader: (secret) => createSseReader(new TranscriptStream(secret)),
  };
}

function readSeconds({ usage, duration }: JsonObject, secondsMin: number) {
  const { seconds, prompt_audio_seconds: audio } = objectOf(usage);
  return toSecondsUsage(seconds ?? audio ?? duration, secondsMin);
}

class TranscriptStream extends FrameReader {
  isFinished = false;

  protected convertFrame(raw: JsonObject): StreamEvent[] {
    const { type, delta, text } = raw;
    if (hasErrorField(raw)) return createFailureEvents(parseStreamFailure(raw, this.secret));
    if (type === "transcript.text.delta") return [deltaEvent(textOf(delta))];
    if (type === "transcription.text.delta") return [deltaEvent(textOf(text))];
    if (type !== "transcript.text.done" && type !== "transcription.done") return [];
    this.isFinished = true;
    return toTranscriptionEvents({ body: { text }, usage: readSeconds(raw, 0) }).slice(1);
  }
}

function deltaEvent(delta: string): StreamEvent {
  const event = { type: "transcript.text.delta", delta };
  return { kind: "native", event, text: delta, finish: null };
}
