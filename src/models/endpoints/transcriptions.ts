import { failureObject } from "../../shared/http/failure-response.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import { parseTranscriptionRequest } from "../core/transcription.ts";
import type {
  EndpointAdapter,
  ParsedRequest,
  Receipt,
  StreamWriter,
} from "../core/endpoint-adapter.ts";

export const transcriptionsEndpoint: EndpointAdapter = {
  name: "transcriptions",
  path: "/v1/audio/transcriptions",
  dialect: null,
  idPrefix: "transcript-", // its responses have no ID
  takesForms: true,
  parse,
};

function parse(value: object): Result<ParsedRequest> {
  const parsed = parseTranscriptionRequest(value);
  if (!parsed.ok) return parsed;
  const { body, user } = parsed.value;
  return success({
    request: { kind: "transcription", body },
    user,
    dropped: [],
    reply: body.stream
      ? { kind: "stream", stream: eventWriter }
      : { kind: "json", json: ({ text }, receipt) => ({ text, usage: usageOf(receipt) }) },
    native: null,
  });
}

function usageOf({ usage, costMicro }: Receipt): JsonObject {
  return { type: "duration", seconds: usage.second ?? 0, ...costFields(costMicro) };
}

/** The whole text comes last, after the charge. */
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

function eventOf(object: JsonObject): string {
  return `data: ${JSON.stringify(object)}\n\n`;
}
