import { toErrorObject } from "../../shared/http/failure-response.ts";
import { costFields } from "../../shared/money.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseTranscriptionRequest } from "../core/transcription.ts";
import type { Receipt, StreamWriter } from "../core/endpoint-adapter.ts";
import { createInputEndpoint } from "./input-endpoints.ts";
import { formatSseEvent, formatNamedSseEvent } from "./openai-events.ts";

export const transcriptionsEndpoint = createInputEndpoint({
  name: "transcriptions",
  input: "file",
  kind: "transcription",
  idPrefix: "transcript-", // Responses of this endpoint have no ID.
  takesForms: true,
  parse: parseTranscriptionRequest,
  reply: ({ body, isMistral }) => {
    const format = isMistral ? MISTRAL_FORMAT : OPENAI_FORMAT;
    return body.stream
      ? { kind: "stream", stream: () => eventWriter(format) }
      : { kind: "json", json: ({ text }, receipt) => format.whole(textOf(text), receipt) };
  },
});

type Format = {
  whole(text: string, receipt: Receipt): JsonObject;
  delta(event: JsonObject): string;
  done(whole: JsonObject): string;
};

const OPENAI_FORMAT: Format = {
  whole: (text, { usage: { second: seconds = 0 }, costMicro }) => {
    return { text, usage: { type: "duration", seconds, ...costFields(costMicro) } };
  },
  delta: formatSseEvent,
  done: (whole) => formatSseEvent({ type: "transcript.text.done", ...whole }),
};

const MISTRAL_FORMAT: Format = {
  whole: (text, { model, usage: { second: seconds = 0 }, costMicro }) => ({
    model,
    text,
    language: null,
    segments: [],
    usage: {
      prompt_audio_seconds: seconds,
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      ...costFields(costMicro),
    },
  }),
  delta: ({ delta: text }) => formatNamedSseEvent({ type: "transcription.text.delta", text }),
  done: (whole) => formatNamedSseEvent({ type: "transcription.done", ...whole }),
};

function eventWriter(format: Format): StreamWriter {
  let text = "";
  return {
    ping: ": keep-alive\n\n",
    begin: () => "",
    chunk: () => "",
    text: () => "",
    native: (event) => {
      const { type, text: whole } = event;
      if (type === "transcript.text.delta") return format.delta(event);
      text = textOf(whole);
      return "";
    },
    end: (receipt) => format.done(format.whole(text, receipt)),
    fail: (failure) => formatSseEvent({ error: toErrorObject(failure) }),
  };
}
