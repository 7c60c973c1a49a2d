import type { CallKindWithoutOutput, UnitOfCallKind } from "../../shared/kinds.ts";
import type { ChatBody } from "./core-request.ts";
import { EMBEDDINGS_REQUEST_RULES } from "./embeddings.ts";
import type { EmbeddingsBody } from "./embeddings.ts";
import { IMAGE_REQUEST_RULES } from "./images.ts";
import type { ImageBody } from "./images.ts";
import type { InputKindRules } from "./input-kind.ts";
import { MODERATION_REQUEST_RULES } from "./moderation.ts";
import type { ModerationBody } from "./moderation.ts";
import { OCR_REQUEST_RULES } from "./ocr.ts";
import type { OcrBody } from "./ocr.ts";
import { RERANK_REQUEST_RULES } from "./rerank.ts";
import type { RerankBody } from "./rerank.ts";
import { SPEECH_REQUEST_RULES } from "./speech.ts";
import type { SpeechBody } from "./speech.ts";
import { TRANSCRIPTION_REQUEST_RULES } from "./transcription.ts";
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

/** The size limits of each kind of request without output tokens, and what a route must support. */
export const INPUT_REQUEST_RULES: {
  readonly [K in CallKindWithoutOutput]: InputKindRules<Bodies[K], UnitOfCallKind<K>>;
} = {
  embeddings: EMBEDDINGS_REQUEST_RULES,
  rerank: RERANK_REQUEST_RULES,
  moderation: MODERATION_REQUEST_RULES,
  image: IMAGE_REQUEST_RULES,
  transcription: TRANSCRIPTION_REQUEST_RULES,
  speech: SPEECH_REQUEST_RULES,
  ocr: OCR_REQUEST_RULES,
};

/** A client request after conversion to OpenAI's format. */
export type CoreRequest = ChatRequest | InputRequest;
/**
 * A chat request. If `apart` is set, each message is a separate prompt, and nothing is streamed.
 */
export type ChatRequest = { readonly kind: "chat"; readonly body: ChatBody; readonly apart?: true };
/** A request of a kind without output tokens. */
export type InputRequest<K extends CallKindWithoutOutput = CallKindWithoutOutput> = {
  [One in K]: { readonly kind: One; readonly body: Bodies[One] };
}[K];
