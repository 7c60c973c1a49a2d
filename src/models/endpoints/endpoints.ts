import { chatEndpoint } from "./chat.ts";
import { completionsEndpoint } from "./completions.ts";
import type { EndpointAdapter } from "../core/endpoint-adapter.ts";
import { embeddingsEndpoint } from "./embeddings.ts";
import { messagesEndpoint } from "./messages.ts";
import { responsesEndpoint } from "./responses.ts";

/** Every way in that costs money. A door is a file or a folder here and a row of this table. */
export const ENDPOINTS: readonly EndpointAdapter[] = [
  chatEndpoint,
  completionsEndpoint,
  responsesEndpoint,
  embeddingsEndpoint,
  messagesEndpoint,
];
