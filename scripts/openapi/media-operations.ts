import { imageEditBodySchema } from "../../src/models/core/image-edit.ts";
import { imageBodySchema } from "../../src/models/core/images.ts";
import { moderationBodySchema } from "../../src/models/core/moderation.ts";
import { ocrBodySchema } from "../../src/models/core/ocr.ts";
import { rerankBodySchema } from "../../src/models/core/rerank.ts";
import { AUDIO_MEDIA_TYPES, speechBodySchema } from "../../src/models/core/speech.ts";
import { transcriptionBodySchema } from "../../src/models/core/transcription.ts";
import * as media from "./media-records.ts";
import { described } from "./operation.ts";
import type { Description } from "./operation.ts";

/** Paid calls other than chat and embeddings. */
export const MEDIA_OPERATIONS: Readonly<Record<string, Description>> = {
  "POST /v1/rerank": described("Ranks documents by their relevance to a query", {
    200: media.ranked,
    description:
      "The format of Cohere's rerank API. Cohere's SDKs call it as `/v2/rerank`. `top_k` is another name of `top_n`. Some models are billed by search units, others by tokens.",
    body: rerankBodySchema,
  }),
  "POST /v1/moderations": described("Finds harmful content in texts and images", {
    200: media.moderated,
    description: "The format of OpenAI's moderations. Images need a model that accepts them.",
    body: moderationBodySchema,
  }),
  "POST /v1/images/generations": described("Generates images, as JSON or as a stream", {
    200: media.images,
    description:
      "The format of OpenAI's image generation. Images are always in base64. `usage.cost_micro` is the cost. The fields that a model accepts, and whether it is billed by images or tokens, depend on the model.",
    body: imageBodySchema,
    events: media.imageEvent,
  }),
  "POST /v1/images/edits": described("Edits images, as JSON or as a stream", {
    200: media.images,
    description:
      "The format of OpenAI's image edits. Send a form with `image` or up to 16 `image[]`, or JSON with `images` as data URLs in base64. The input images are billed as `input_image_token`, or at xAI as `input_image`. A model whose price lacks this unit can't edit images.",
    body: imageEditBodySchema,
    takesForms: true,
    events: media.imageEvent,
  }),
  "POST /v1/audio/transcriptions": described("Transcribes audio, as JSON or as a stream", {
    200: media.transcript,
    description:
      "The format of OpenAI's transcriptions. Send a form, or JSON with the file as a data URL in base64. `usage.seconds` are billed. With `diarize`, the response has Mistral's format.",
    body: transcriptionBodySchema,
    takesForms: true,
    events: media.transcriptEvent,
  }),
  "POST /v1/audio/speech": described(
    "Turns a text into speech, as an audio file or as a stream of events",
    {
      200: media.audio,
      description:
        "The format of OpenAI's speech. The audio is forwarded while it arrives. The request is billed by the characters of `input`, or by tokens of text and audio. GET /v1/generations/{id} returns its cost. With `voice_id`, the response has Mistral's format.",
      body: speechBodySchema,
      files: [...Object.values(AUDIO_MEDIA_TYPES), "application/json"],
      events: media.speechEvent,
    },
  ),
  "POST /v1/ocr": described("Reads the text of a document's pages as Markdown", {
    200: media.readDocument,
    description:
      "The format of Mistral's OCR. `pages` is required for a `document_url`. The charge is for the pages that the provider processed.",
    body: ocrBodySchema,
  }),
};
