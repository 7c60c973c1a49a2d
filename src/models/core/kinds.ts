import type { InputKind, Kind, UnitOf } from "../../shared/kinds.ts";
import type { ChatBody } from "./core-request.ts";
import { EMBEDDINGS } from "./embeddings.ts";
import type { EmbeddingsBody } from "./embeddings.ts";
import { IMAGES } from "./images.ts";
import type { ImageBody } from "./images.ts";
import type { InputKindOf } from "./input-kind.ts";
import { MODERATION } from "./moderation.ts";
import type { ModerationBody } from "./moderation.ts";
import { OCR } from "./ocr.ts";
import type { OcrBody } from "./ocr.ts";
import { RERANK } from "./rerank.ts";
import type { RerankBody } from "./rerank.ts";
import { SPEECH } from "./speech.ts";
import type { SpeechBody } from "./speech.ts";
import { TRANSCRIPTION } from "./transcription.ts";
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

/** The size and the needs of a request, for each kind without output tokens. */
export const INPUT_KINDS: { readonly [K in InputKind]: InputKindOf<Bodies[K], UnitOf<K>> } = {
  embeddings: EMBEDDINGS,
  rerank: RERANK,
  moderation: MODERATION,
  image: IMAGES,
  transcription: TRANSCRIPTION,
  speech: SPEECH,
  ocr: OCR,
};

export type CoreRequest = ChatRequest | InputRequest;
/**
 * A chat request. `apart`: each message is a separate prompt with the same settings. Never
 * streamed.
 */
export type ChatRequest = {
  readonly kind: "chat";
  readonly body: ChatBody;
  readonly apart?: true;
};
export type InputRequest<K extends InputKind = InputKind> = {
  [One in K]: { readonly kind: One; readonly body: Bodies[One] };
}[K];

export type { InputKind, Kind };
