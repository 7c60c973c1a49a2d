import { describe, expect, it } from "vitest";
import { FormFile } from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { balanceOf, bindingsWith, errorOf, send } from "./client.ts";
import {
  answering as answeringWith,
  charged as chargedFor,
  eventsIn,
  statusAndCost,
  formOf,
  key,
  streaming,
  usePayer,
} from "./media-client.ts";

const KEYS = { OPENAI_API_KEY: "k", GROQ_API_KEY: "k", MISTRAL_API_KEY: "k" };
const SECOND_MICRO = 100;
const BYTES = 20_000;

usePayer();

type Sent = {
  readonly fields?: Readonly<Record<string, string>>;
  readonly bytes?: number;
  readonly bindings?: Env;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
};

/** Returns bytes after the start of a tag, for which the gateway holds an amount as for sound. */
function sound(bytes: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(bytes).fill(7);
  file.set(new TextEncoder().encode("ID3").subarray(0, bytes));
  return file;
}

async function transcribe({ fields = {}, bytes = BYTES, headers, ...more }: Sent = {}) {
  const file = new FormFile("a.mp3", "audio/mpeg", sound(bytes));
  const formFields: FormField[] = Object.entries({ model: "sandbox/transcribe", ...fields });
  const form = await formOf([...formFields, ["file", file]]);
  return send("/v1/audio/transcriptions", {
    key,
    ...form,
    headers: { ...form.headers, ...headers },
    ...more,
  });
}

const charged = (sent: Sent) => chargedFor(() => transcribe(sent));
const answering = (answer: () => Response | Promise<Response>, numbers: object = {}) =>
  answeringWith({ ...KEYS, ...numbers }, answer);

describe("POST /v1/audio/transcriptions", () => {
  it("holds credits for the longest audio that the file size allows, and charges the counted seconds", async () => {
    const { text, receipt } = await charged({});
    expect(JSON.parse(text)).toEqual({
      text: "This is the audio of a.mp3.",
      usage: expect.objectContaining({ type: "duration", seconds: 20 }) as object,
    });
    expect(receipt).toMatchObject({
      held_micro: 40 * SECOND_MICRO,
      cost_micro: 20 * SECOND_MICRO,
      estimated: false,
      lines: [{ what: "second", tokens: 20, micro: 20 * SECOND_MICRO }],
    });
  });

  it("streams events in OpenAI's format", async () => {
    const { text, receipt } = await charged({ fields: { stream: "true" } });
    expect(eventsIn(text)).toMatchObject([
      { type: "transcript.text.delta", delta: "This is the audio of a.mp3." },
      { type: "transcript.text.done", usage: { type: "duration", seconds: 20 } },
    ]);
    expect(receipt.cost_micro).toBe(20 * SECOND_MICRO);
  });

  it("returns Mistral's response format for a form with the field 'diarize'", async () => {
    const usage = expect.objectContaining({ prompt_audio_seconds: 20, cost_micro: 2000 }) as object;
    const whole = {
      model: "sandbox/transcribe",
      text: "This is the audio of a.mp3.",
      language: null,
      segments: [],
      usage,
    };
    const { text } = await charged({ fields: { diarize: "false" } });
    expect(JSON.parse(text)).toEqual(whole);
    const streamed = await charged({ fields: { diarize: "false", stream: "true" } });
    expect(streamed.text.match(/^event: \S+$/gm)).toEqual([
      "event: transcription.text.delta",
      "event: transcription.done",
    ]);
    expect(eventsIn(streamed.text)).toEqual([
      { type: "transcription.text.delta", text: whole.text },
      { type: "transcription.done", ...whole },
    ]);
  });

  it("runs a retried form only once, even if the multipart boundary differs", async () => {
    const headers = { "idempotency-key": crypto.randomUUID() };
    await charged({ headers });
    expect((await transcribe({ headers })).status).toBe(409);
    expect((await transcribe({ headers, bytes: BYTES + 1 })).status).toBe(422);
  });
});

const SECONDS = { text: "Hi", usage: { type: "duration", seconds: 12.2 } };
async function secondsLater(): Promise<Response> {
  await scheduler.wait(300);
  return Response.json(SECONDS);
}

const AUDIO_SECONDS = { text: "Hi", model: "m", usage: { prompt_audio_seconds: 12 } };

describe("POST /v1/audio/transcriptions with JSON", () => {
  it.each(["AA", "AAA", "AAAA", "AA==", "AAA="])("accepts the base64 data %j", async (data) => {
    const body = { model: "sandbox/transcribe", file: `data:audio/mp3;base64,SUQz${data}` };
    const response = await send("/v1/audio/transcriptions", { key, method: "POST", body });
    expect(response.status).toBe(200);
  });
});

describe("POST /v1/audio/transcriptions at providers", () => {
  it.each([
    ["OpenAI's seconds", "openai/gpt-transcribe", SECONDS, 13 * 75],
    ["Groq's duration", "openai/whisper-large-v3", { text: "Hi", duration: 12.2 }, 401],
    ["Groq's minimum of 10 seconds", "openai/whisper-large-v3", { text: "Hi", duration: 1 }, 309],
    [
      "only the held seconds if more are reported",
      "openai/gpt-transcribe",
      { ...SECONDS, usage: { seconds: 999 } },
      3000,
    ],
    ["the held seconds if none are reported", "openai/gpt-transcribe", { text: "Hi" }, 3000],
    [
      "the held seconds if the count isn't a number",
      "openai/gpt-transcribe",
      { text: "Hi", usage: { seconds: "1" } },
      3000,
    ],
  ])("charges by audio length: %s", async (_, model, answer, cost) => {
    const { calls, bindings } = answering(() => Response.json(answer));
    const { text, receipt } = await charged({ fields: { model, prompt: "a word" }, bindings });
    expect(JSON.parse(text)).toMatchObject({ text: "Hi" });
    expect(receipt.cost_micro).toBe(cost);
    expect(calls[0]?.url).toMatch(/\/v1\/audio\/transcriptions$/);
    expect(calls[0]?.body).toMatchObject({
      model: model.split("/")[1],
      prompt: "a word",
      file: expect.objectContaining({ name: "a.mp3", size: BYTES }) as File,
    });
  });

  it("charges the audio seconds that Mistral reports, and lists dropped fields", async () => {
    const { calls, bindings } = answering(() => Response.json(AUDIO_SECONDS));
    const fields = { model: "mistral/voxtral-mini-transcribe-3", prompt: "a", temperature: "0.5" };
    const { receipt, headers } = await charged({ fields, bindings });
    expect(receipt.cost_micro).toBe(Math.ceil(12 * (0.0035 / 60) * 1.1 * 1_000_000));
    expect(headers.get("x-dropped")).toBe("prompt");
    expect(calls[0]?.body).toMatchObject({ temperature: "0.5" });
    expect(calls[0]?.body).not.toHaveProperty("prompt");
  });

  it.each([
    [
      "OpenAI's",
      "openai/gpt-transcribe",
      [
        { type: "transcript.text.delta", delta: "Hi " },
        { type: "transcript.text.delta", delta: "you" },
        { type: "transcript.text.done", text: "Hi you", usage: { type: "duration", seconds: 12 } },
      ],
      12 * 75,
    ],
    [
      "Mistral's",
      "mistral/voxtral-mini-transcribe-3",
      [
        { type: "transcription.language", audio_language: "en" },
        { type: "transcription.text.delta", text: "Hi " },
        { type: "transcription.text.delta", text: "you" },
        { type: "transcription.done", text: "Hi you", usage: { prompt_audio_seconds: 12 } },
      ],
      Math.ceil(12 * (0.0035 / 60) * 1.1 * 1_000_000),
    ],
    [
      "without seconds, as held,",
      "openai/gpt-transcribe",
      [
        { type: "transcript.text.delta", delta: "Hi " },
        { type: "transcript.text.delta", delta: "you" },
        { type: "transcript.text.done", text: "Hi you" },
      ],
      3000,
    ],
  ])("charges for %s stream when the stream is complete", async (_, model, events, cost) => {
    const { bindings } = answering(() => streaming(...events));
    const { text, receipt } = await charged({ fields: { model, stream: "true" }, bindings });
    expect(eventsIn(text)).toMatchObject([
      { type: "transcript.text.delta", delta: "Hi " },
      { type: "transcript.text.delta", delta: "you" },
      { type: "transcript.text.done", text: "Hi you" },
    ]);
    expect(receipt.cost_micro).toBe(cost);
  });

  it("converts the JSON response of a provider that can't stream to a stream", async () => {
    const { calls, bindings } = answering(() => Response.json({ text: "Hi", duration: 12 }));
    const fields = { model: "openai/whisper-large-v3", stream: "true" };
    const { text } = await charged({ fields, bindings });
    expect(eventsIn(text)).toMatchObject([{ delta: "Hi" }, { text: "Hi" }]);
    expect(calls[0]?.body).not.toHaveProperty("stream");
  });

  it("ends the client's stream with an error, without a charge, if the provider's stream breaks off", async () => {
    const { bindings } = answering(() => streaming({ type: "transcript.text.delta", delta: "Hi" }));
    const fields = { model: "openai/gpt-transcribe", stream: "true" };
    const before = await balanceOf(key);
    const text = await (await transcribe({ fields, bindings })).text();
    expect(eventsIn(text)).toMatchObject([{ delta: "Hi" }, { error: { type: "upstream_error" } }]);
    expect(await balanceOf(key)).toBe(before);
  });

  it("waits longer than UPSTREAM_HEADERS_MS, because uploads take time", async () => {
    const { bindings } = answering(secondsLater, { UPSTREAM_HEADERS_MS: "50" });
    const { receipt } = await charged({ fields: { model: "openai/gpt-transcribe" }, bindings });
    expect(receipt.cost_micro).toBe(13 * 75);
  });

  it("keeps reading longer than DRAIN_S after a disconnect, and charges the counted seconds", async () => {
    const client = new AbortController();
    const respondAfterDisconnect = () => {
      client.abort();
      return secondsLater();
    };
    const { bindings } = answering(respondAfterDisconnect, { DRAIN_S: "0" });
    const fields = { model: "openai/gpt-transcribe" };
    const before = await balanceOf(key);
    await transcribe({ fields, bindings, signal: client.signal });
    expect(before - (await balanceOf(key))).toBe(13 * 75);
  });

  it.each([{}, { text: 5 }, { text: null, usage: { seconds: 3 } }])(
    "returns 502 for %j, and charges nothing",
    async (answer) => {
      const { bindings } = answering(() => Response.json(answer));
      expect(
        await statusAndCost(() => transcribe({ fields: { model: "gpt-transcribe" }, bindings })),
      ).toEqual([502, 0]);
    },
  );
});

describe("a rejected POST /v1/audio/transcriptions", () => {
  it.each([
    ["language", { language: "English" }],
    ["temperature", { temperature: "2" }],
    ["temperature", { temperature: "warm" }],
    ["response_format", { response_format: "srt" }],
    ["stream", { stream: "yes" }],
    ["diarize", { diarize: "true" }],
    ["timestamp_granularities", { "timestamp_granularities[]": "word" }],
    ["user", { user: "x".repeat(257) }],
  ])("returns 400 with the param for an invalid %s", async (param, fields) => {
    const error = await errorOf(await transcribe({ fields }), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
  });

  it("returns 400 for an empty file", async () => {
    expect(await errorOf(await transcribe({ bytes: 0 }), 400)).toMatchObject({ param: "file" });
  });

  it("returns 400 for a file of unknown length", async () => {
    const body = { model: "sandbox/transcribe", file: `data:audio/amr;base64,${btoa("#!AMR\n<")}` };
    const response = await send("/v1/audio/transcriptions", { key, method: "POST", body });
    const error = await errorOf(response, 400);
    expect(error).toMatchObject({ param: "file", type: "invalid_request_error" });
    expect(error["message"]).toMatch(/^The duration of this file can't be determined\. Send WAV, /);
  });

  it("returns 415 for a form at an endpoint that accepts only JSON", async () => {
    const headers = { "content-type": "multipart/form-data; boundary=b" };
    const response = await send("/v1/rerank", { key, method: "POST", headers, body: "--b--" });
    expect(await errorOf(response, 415)).toMatchObject({ type: "invalid_request_error" });
  });

  it("returns 503 for a model with a price per token, because the gateway counts only seconds", async () => {
    const routes = [{ provider: "openai", upstream_id: "m" }];
    const model = { id: "x/y", kind: "transcription", context: 512, routes, price: { input: 5 } };
    const bindings = bindingsWith({ ...KEYS, MODELS: JSON.stringify([model]) });
    expect((await transcribe({ bindings })).status).toBe(503);
  });
});
