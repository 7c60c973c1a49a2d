import { failureObject } from "../../shared/http/failure-response.ts";
import { costFields } from "../../shared/money.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseTranscriptionRequest } from "../core/transcription.ts";
import type { Receipt, StreamWriter } from "../core/endpoint-adapter.ts";
import { inputEndpoint } from "./input-endpoint.ts";
import { eventOf } from "./openai-events.ts";

export const transcriptionsEndpoint = inputEndpoint({
  name: "transcriptions",
  kind: "transcription",
  idPrefix: "transcript-", // its responses have no ID
  takesForms: true,
  parse: parseTranscriptionRequest,
  request: ({ body }) => ({ kind: "transcription", body }),
  reply: ({ body }) =>
    body.stream
      ? { kind: "stream", stream: eventWriter }
      : { kind: "json", json: ({ text }, receipt) => ({ text, usage: usageOf(receipt) }) },
});

function usageOf({ usage, costMicro }: Receipt): JsonObject {
  return { type: "duration", seconds: usage.second ?? 0, ...costFields(costMicro) };
}

/** Writes events. The last one, with the whole text, follows after the charge. */
function eventWriter(): StreamWriter {
  let text = "";
  return {
    ping: ": keep-alive\n\n",
    begin: () => "",
    chunk: () => "",
    text: () => "",
    native: (event) => {
      const { type, text: whole } = event;
      if (type === "transcript.text.delta") return eventOf(event);
      text = textOf(whole);
      return "";
    },
    end: (receipt) => eventOf({ type: "transcript.text.done", text, usage: usageOf(receipt) }),
    fail: (failure) => eventOf({ error: failureObject(failure) }),
  };
}
