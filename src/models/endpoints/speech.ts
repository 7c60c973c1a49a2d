import { joinBytes } from "../../shared/http/bounded-body.ts";
import type { Failure } from "../../shared/failure.ts";
import { toErrorObject } from "../../shared/http/failure-response.ts";
import { costFields } from "../../shared/money.ts";
import { toBase64 } from "../core/data-url.ts";
import type { Receipt, StreamWriter, ResponseStreamData } from "../core/endpoint-adapter.ts";
import type { JsonObject } from "../core/json-value.ts";
import { AUDIO_MEDIA_TYPES, parseSpeechRequest } from "../core/speech.ts";
import { createInputEndpoint } from "./input-endpoints.ts";
import { formatSseEvent, formatNamedSseEvent } from "./openai-events.ts";

export const speechEndpoint = createInputEndpoint({
  name: "speech",
  input: "input",
  kind: "speech",
  parse: parseSpeechRequest,
  reply: ({ body, isMistral }) => {
    if (body.stream_format === "sse") {
      return { kind: "stream", stream: isMistral ? mistralEvents : openAiEvents };
    }
    return {
      kind: "stream",
      contentType: isMistral ? "application/json" : AUDIO_MEDIA_TYPES[body.response_format],
      stream: () => (isMistral ? new JsonWriter() : new AudioWriter()),
    };
  },
});

const NO_TEXT = { begin: () => "", chunk: () => "", text: () => "" } as const;

class AudioWriter implements StreamWriter {
  readonly ping = "";
  readonly begin = NO_TEXT.begin;
  readonly chunk = NO_TEXT.chunk;
  readonly text = NO_TEXT.text;
  #last: ResponseStreamData = "";

  audio(bytes: Uint8Array): ResponseStreamData {
    const before = this.#last;
    this.#last = bytes;
    return before;
  }

  end(): ResponseStreamData {
    return this.#last;
  }

  /** Aborts the connection, because players would accept an incomplete file. */
  fail(): null {
    return null;
  }
}

class JsonWriter implements StreamWriter {
  readonly ping = "";
  readonly begin = NO_TEXT.begin;
  readonly chunk = NO_TEXT.chunk;
  readonly text = NO_TEXT.text;
  #rest = new Uint8Array();
  #hasBegun = false;

  /** Encodes audio in multiples of 3 bytes, because these need no padding. */
  audio(bytes: Uint8Array): string {
    const all = joinBytes([this.#rest, bytes], this.#rest.length + bytes.length);
    const whole = all.length - (all.length % 3);
    this.#rest = all.slice(whole);
    const start = this.#hasBegun ? "" : '{"audio_data":"';
    this.#hasBegun = true;
    return start + toBase64(all.subarray(0, whole));
  }

  end(receipt: Receipt): string {
    const usage = JSON.stringify(usageOf(receipt, MISTRAL_NAMES));
    return `${toBase64(this.#rest)}","usage":${usage}}`;
  }

  fail(failure: Failure): string {
    return this.#hasBegun ? "" : JSON.stringify({ error: toErrorObject(failure) });
  }
}

type UsageNames = readonly [input: string, output: string];
const OPENAI_NAMES: UsageNames = ["input_tokens", "output_tokens"];
const MISTRAL_NAMES: UsageNames = ["prompt_tokens", "completion_tokens"];

function openAiEvents(): StreamWriter {
  return {
    ...EVENT_WRITER,
    audio: (bytes) => formatSseEvent({ type: "speech.audio.delta", audio: toBase64(bytes) }),
    end: (receipt) =>
      formatSseEvent({ type: "speech.audio.done", usage: usageOf(receipt, OPENAI_NAMES) }),
  };
}

function mistralEvents(): StreamWriter {
  return {
    ...EVENT_WRITER,
    audio: (bytes) =>
      formatNamedSseEvent({ type: "speech.audio.delta", audio_data: toBase64(bytes) }),
    end: (receipt) =>
      formatNamedSseEvent({ type: "speech.audio.done", usage: usageOf(receipt, MISTRAL_NAMES) }),
  };
}

const EVENT_WRITER = {
  ...NO_TEXT,
  ping: ": keep-alive\n\n",
  fail: (failure: Failure) => formatSseEvent({ error: toErrorObject(failure) }),
};

function usageOf({ usage, costMicro }: Receipt, [input, output]: UsageNames): JsonObject {
  const { character: characters = 0, audio_token: audio = 0 } = usage;
  const tokens = { [input]: usage.input, [output]: audio, total_tokens: usage.input + audio };
  return { ...tokens, characters, ...costFields(costMicro) };
}
