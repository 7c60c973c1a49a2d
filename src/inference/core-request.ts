import type { ChatBody } from "./chat-request.ts";
import type { EmbeddingsBody } from "./embeddings-request.ts";

/**
 * What every door asks of the core: OpenAI's chat or embeddings, checked, with the fields that let
 * another dialect survive the way (`reasoning_details`, ...). `stream` and `user` of the body say nothing
 * here: the door does. Adapters forward an allow-list of its fields.
 */
export type CoreRequest =
  | { readonly kind: "chat"; readonly body: ChatBody }
  | { readonly kind: "embeddings"; readonly body: EmbeddingsBody };
