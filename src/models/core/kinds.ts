import type { CallKindWithoutOutput, UnitOfCallKind } from "../../shared/kinds.ts";
import type { ChatBody } from "./core-request.ts";
import { EMBEDDINGS_REQUEST_RULES } from "./embeddings.ts";
import { IMAGE_REQUEST_RULES } from "./images.ts";
import type { InputKindRules } from "./input-kind.ts";
import { MODERATION_REQUEST_RULES } from "./moderation.ts";
import { OCR_REQUEST_RULES } from "./ocr.ts";
import { RERANK_REQUEST_RULES } from "./rerank.ts";
import { SPEECH_REQUEST_RULES } from "./speech.ts";
import { TRANSCRIPTION_REQUEST_RULES } from "./transcription.ts";

const RULES = {
  embeddings: EMBEDDINGS_REQUEST_RULES,
  rerank: RERANK_REQUEST_RULES,
  moderation: MODERATION_REQUEST_RULES,
  image: IMAGE_REQUEST_RULES,
  transcription: TRANSCRIPTION_REQUEST_RULES,
  speech: SPEECH_REQUEST_RULES,
  ocr: OCR_REQUEST_RULES,
};

type Bodies = {
  readonly [K in CallKindWithoutOutput]: Parameters<(typeof RULES)[K]["size"]>[0];
};

/** The size limits of each kind of request without output tokens, and what a route must support. */
export const INPUT_REQUEST_RULES: {
  readonly [K in CallKindWithoutOutput]: InputKindRules<Bodies[K], UnitOfCallKind<K>>;
} = RULES;

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
