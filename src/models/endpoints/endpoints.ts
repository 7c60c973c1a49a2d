import { chatEndpoint } from "./chat.ts";
import { completionsEndpoint } from "./completions.ts";
import type { EndpointAdapter } from "../core/endpoint-adapter.ts";
import {
  embeddingsEndpoint,
  moderationsEndpoint,
  ocrEndpoint,
  rerankEndpoint,
} from "./input-endpoints.ts";
import { imageEditsEndpoint, imagesEndpoint } from "./images.ts";
import { messagesEndpoint } from "./messages.ts";
import { responsesEndpoint } from "./responses.ts";
import { speechEndpoint } from "./speech.ts";
import { transcriptionsEndpoint } from "./transcriptions.ts";

export const ENDPOINTS: readonly EndpointAdapter[] = [
  chatEndpoint,
  completionsEndpoint,
  responsesEndpoint,
  embeddingsEndpoint,
  messagesEndpoint,
  rerankEndpoint,
  moderationsEndpoint,
  imagesEndpoint,
  imageEditsEndpoint,
  transcriptionsEndpoint,
  speechEndpoint,
  ocrEndpoint,
];
