import { failureObject } from "../../shared/http/failure-response.ts";
import { costFields } from "../../shared/money.ts";
import { toBase64 } from "../core/base64.ts";
import type { Receipt, StreamWriter, Written } from "../core/endpoint-adapter.ts";
import type { JsonObject } from "../core/json-value.ts";
import { AUDIO_TYPES, parseSpeechRequest } from "../core/speech.ts";
import { inputEndpoint } from "./input-endpoint.ts";
import { eventOf } from "./openai-events.ts";

export const speechEndpoint = inputEndpoint({
  name: "speech",
  kind: "speech",
  parse: parseSpeechRequest,
  request: ({ body }) => ({ kind: "speech", body }),
  reply: ({ body }) =>
    body.stream_format === "sse"
      ? { kind: "stream", stream: eventWriter }
      : {
          kind: "stream",
          contentType: AUDIO_TYPES[body.response_format],
          stream: () => new AudioWriter(),
        },
});

const SILENT = { begin: () => "", chunk: () => "", text: () => "" } as const;

/** Writes an audio file. Its last bytes wait for the charge. */
class AudioWriter implements StreamWriter {
  readonly ping = "";
  readonly begin = SILENT.begin;
  readonly chunk = SILENT.chunk;
  readonly text = SILENT.text;
  #last: Written = "";

  audio(bytes: Uint8Array): Written {
    const before = this.#last;
    this.#last = bytes;
    return before;
  }

  end(): Written {
    return this.#last;
  }

  /** Breaks off the response, because players accept an incomplete file as complete. */
  fail(): null {
    return null;
  }
}

function eventWriter(): StreamWriter {
  return {
    ...SILENT,
    ping: ": keep-alive\n\n",
    audio: (bytes) => eventOf({ type: "speech.audio.delta", audio: toBase64(bytes) }),
    end: (receipt) => eventOf({ type: "speech.audio.done", usage: usageOf(receipt) }),
    fail: (failure) => eventOf({ error: failureObject(failure) }),
  };
}

/** Returns OpenAI's token counts. They are 0 for models that are billed by the character. */
function usageOf({ usage: { character: characters = 0 }, costMicro }: Receipt): JsonObject {
  const tokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  return { ...tokens, characters, ...costFields(costMicro) };
}
