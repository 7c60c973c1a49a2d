import type { InputKind, Kind } from "../../shared/kinds.ts";
import type { ChatBody } from "./core-request.ts";
import { EMBEDDINGS } from "./embeddings.ts";
import type { EmbeddingsBody } from "./embeddings.ts";
import type { InputKindOf } from "./input-kind.ts";

/** What is asked by each kind of call: a body of its own, checked. */
type Bodies = {
  readonly chat: ChatBody;
  readonly embeddings: EmbeddingsBody;
};

/** How each kind without output is sized and sent. */
export const INPUT_KINDS: { readonly [K in InputKind]: InputKindOf<Bodies[K]> } = {
  embeddings: EMBEDDINGS,
};

/**
 * What every door asks of the core: OpenAI's chat, or a kind without output, checked, with the fields that let another
 * dialect survive the way (`reasoning_details`, ...). `stream` and `user` of the body say nothing here: the door
 * does. Adapters forward an allow-list of its fields.
 */
export type CoreRequest = ChatRequest | InputRequest;
/** `apart`: each message is a prompt that is answered apart, all with the body's settings; never as a stream. */
export type ChatRequest = {
  readonly kind: "chat";
  readonly body: ChatBody;
  readonly apart?: true;
};
export type InputRequest<K extends InputKind = InputKind> = {
  [One in K]: { readonly kind: One; readonly body: Bodies[One] };
}[K];

export type { InputKind, Kind };
