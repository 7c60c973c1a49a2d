import type { CallKindWithoutOutput, UnitOf } from "../../shared/kinds.ts";
import type { ChatBody } from "./core-request.ts";
import { EMBEDDINGS_KIND } from "./embeddings.ts";
import type { EmbeddingsBody } from "./embeddings.ts";
import { IMAGE_KIND } from "./images.ts";
import type { ImageBody } from "./images.ts";
import type { InputKindRules } from "./input-kind.ts";
import { MODERATION_KIND } from "./moderation.ts";
import type { ModerationBody } from "./moderation.ts";
import { OCR_KIND } from "./ocr.ts";
import type { OcrBody } from "./ocr.ts";
import { RERANK_KIND } from "./rerank.ts";
import type { RerankBody } from "./rerank.ts";
import { SPEECH_KIND } from "./speech.ts";
import type { SpeechBody } from "./speech.ts";
import { TRANSCRIPTION_KIND } from "./transcription.ts";
import type { TranscriptionBody } from "./transcription.ts";

type Bodies = {
  readonly chat: ChatBody;
  readonly embeddings: EmbeddingsBody;
  readonly rerank: RerankBody;
  readonly moderation: ModerationBody;
  readonly image: ImageBody;
  readonly transcription: TranscriptionBody;
  readonly speech: SpeechBody;
  readonly ocr: OcrBody;
};

/** Rules for the size and route needs of requests, for each kind without output tokens. */
export const INPUT_KINDS: {
  readonly [K in CallKindWithoutOutput]: InputKindRules<Bodies[K], UnitOf<K>>;
} = {
  embeddings: EMBEDDINGS_KIND,
  rerank: RERANK_KIND,
  moderation: MODERATION_KIND,
  image: IMAGE_KIND,
  transcription: TRANSCRIPTION_KIND,
  speech: SPEECH_KIND,
  ocr: OCR_KIND,
};

/** A client request after conversion to OpenAI's format. */
export type CoreRequest = ChatRequest | InputRequest;
/**
 * A chat request. If `apart` is set, each message is a separate prompt, and nothing is streamed.
 */
export type ChatRequest = { readonly kind: "chat"; readonly body: ChatBody; readonly apart?: true };
export type InputRequest<K extends CallKindWithoutOutput = CallKindWithoutOutput> = {
  [One in K]: { readonly kind: One; readonly body: Bodies[One] };
}[K];
