import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "../../src/models/core/data-url.ts";
import { balanceOf } from "./client.ts";
import {
  answering as answeringWith,
  charged as chargedFor,
  eventsIn,
  key,
  sender,
  streaming,
  usePayer,
} from "./media-client.ts";
import type { Sent } from "./media-client.ts";

const KEYS = { GROQ_API_KEY: "k", MISTRAL_API_KEY: "k" };
const CHARACTER_MICRO = 10;
const VOXTRAL = "mistral/voxtral-mini-tts-3";
const ORPHEUS = "canopylabs/orpheus-v1-english";
const TEXT = "Grüße 🦊";
const [BYTES, POINTS] = [12, 7];
/** Micro-credits of TEXT on Mistral's regional host, at $13 per million and 10%. */
const VOXTRAL_COST = Math.ceil(BYTES * 13 * 1.1);

usePayer();
const speak = sender("/v1/audio/speech", { model: "sandbox/speech", input: TEXT, voice: "alloy" });

async function charged(sent: Sent = {}) {
  const { headers, ...rest } = await chargedFor(() => speak(sent));
  return { ...rest, type: headers.get("content-type") };
}
const answering = (answer: () => Response | Promise<Response>, numbers: object = {}) =>
  answeringWith({ ...KEYS, ...numbers }, answer);

const file = (...parts: string[]): Response =>
  new Response(streamOf(parts), { headers: { "content-type": "audio/wav" } });

function streamOf(parts: readonly string[], then?: "breaks off"): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const remaining = [...parts];
  return new ReadableStream({
    pull(controller) {
      const part = remaining.shift();
      if (part !== undefined) controller.enqueue(encoder.encode(part));
      else if (then === undefined) controller.close();
      else controller.error(new Error(then));
    },
  });
}

const base64 = (text: string): string => toBase64(new TextEncoder().encode(text));
const delta = (text: string) => ({ type: "speech.audio.delta", audio: base64(text) });

describe("POST /v1/audio/speech", () => {
  it("holds credits for the text's bytes, and charges the text's characters", async () => {
    const { text, type, receipt } = await charged({ body: { response_format: "opus" } });
    expect([text, type]).toEqual([TEXT, "audio/opus"]);
    expect(receipt).toMatchObject({
      held_micro: BYTES * CHARACTER_MICRO,
      cost_micro: POINTS * CHARACTER_MICRO,
      estimated: false,
      lines: [{ what: "character", tokens: POINTS, micro: POINTS * CHARACTER_MICRO }],
    });
  });

  it("streams events in OpenAI's format, with the cost in the last event", async () => {
    const { text, type } = await charged({ body: { stream_format: "sse", input: "Hi" } });
    expect(type).toMatch(/^text\/event-stream/);
    expect(eventsIn(text)).toMatchObject([
      delta("H"),
      delta("i"),
      { type: "speech.audio.done", usage: { total_tokens: 0, characters: 2, cost_micro: 20 } },
    ]);
  });

  it.each(["H", "He", "Hel", "Hello", TEXT])(
    "returns JSON in Mistral's format for the text %j with a voice_id",
    async (input) => {
      const body = { voice: undefined, voice_id: "alloy", input };
      const { text, type, receipt } = await charged({ body });
      expect(type).toBe("application/json");
      const { audio_data: data, usage } = JSON.parse(text) as { audio_data: string; usage: object };
      expect(new TextDecoder().decode(fromBase64(data))).toBe(input);
      expect(usage).toMatchObject({ total_tokens: 0, cost_micro: receipt.cost_micro });
    },
  );

  it("streams events in Mistral's format for a request with a voice_id", async () => {
    const body = { voice: undefined, voice_id: "alloy", input: "Hi", stream: true };
    const { text } = await charged({ body });
    expect(text.match(/^event: \S+$/gm)).toEqual([
      "event: speech.audio.delta",
      "event: speech.audio.delta",
      "event: speech.audio.done",
    ]);
    expect(eventsIn(text)).toMatchObject([
      { type: "speech.audio.delta", audio_data: base64("H") },
      { type: "speech.audio.delta", audio_data: base64("i") },
      { type: "speech.audio.done", usage: { prompt_tokens: 0, characters: 2, cost_micro: 20 } },
    ]);
  });

  it("accepts a voice object with an ID", async () => {
    expect((await charged({ body: { voice: { id: "v" } } })).text).toBe(TEXT);
  });
});

const EMPTY_AUDIO = [{ type: "speech.audio.delta", audio_data: "" }, { type: "speech.audio.done" }];

describe("POST /v1/audio/speech at providers", () => {
  it("forwards the audio file of a provider that uses OpenAI's format", async () => {
    const { calls, bindings } = answering(() => file("RI", "FF", "end"));
    const body = { model: ORPHEUS, response_format: "wav", speed: 1.5, stream_format: "audio" };
    const { text, type, receipt } = await charged({ body, bindings });
    expect([text, type]).toEqual(["RIFFend", "audio/wav"]);
    expect(receipt).toMatchObject({ cost_micro: BYTES * 22, estimated: true });
    expect(calls[0]?.url).toMatch(/\/v1\/audio\/speech$/);
    expect(calls[0]?.body).toEqual({
      model: ORPHEUS,
      input: TEXT,
      voice: "alloy",
      response_format: "wav",
      speed: 1.5,
    });
  });

  it("converts a provider's audio file to events", async () => {
    const { bindings } = answering(() => file("RIFF"));
    const body = { model: ORPHEUS, response_format: "wav", stream_format: "sse" };
    const { text } = await charged({ body, bindings });
    expect(eventsIn(text)).toMatchObject([
      delta("RIFF"),
      { type: "speech.audio.done", usage: { characters: BYTES } },
    ]);
  });

  it.each([1, 2, 3, 5, 1000])("decodes Mistral's JSON in chunks of %i bytes", async (size) => {
    const json = JSON.stringify({ audio_data: base64("an audio file") });
    const parts = json.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
    const headers = { "content-type": "application/json" };
    const { calls, bindings } = answering(() => new Response(streamOf(parts), { headers }));
    const { text, type, receipt } = await charged({ body: { model: VOXTRAL }, bindings });
    expect([text, type]).toEqual(["an audio file", "audio/mpeg"]);
    expect(receipt).toMatchObject({ cost_micro: VOXTRAL_COST, held_micro: VOXTRAL_COST });
    expect(calls[0]?.body).toEqual({
      model: "voxtral-mini-tts-3-0",
      input: TEXT,
      voice_id: "alloy",
      response_format: "mp3",
      stream: false,
    });
  });

  it("converts Mistral's stream to OpenAI's events", async () => {
    const { calls, bindings } = answering(() =>
      streaming(
        { type: "speech.audio.delta", audio_data: base64("an ") },
        { type: "speech.audio.delta", audio_data: base64("audio") },
        { type: "speech.audio.done", usage: { total_tokens: 1 } },
      ),
    );
    const body = { model: VOXTRAL, stream_format: "sse" };
    const { text, receipt } = await charged({ body, bindings });
    expect(eventsIn(text)).toMatchObject([
      delta("an "),
      delta("audio"),
      { type: "speech.audio.done", usage: { characters: BYTES, cost_micro: VOXTRAL_COST } },
    ]);
    expect(receipt.cost_micro).toBe(VOXTRAL_COST);
    expect(calls[0]?.body).toMatchObject({ stream: true });
  });

  it.each([
    ["an empty file", () => file()],
    ["JSON without audio", () => Response.json({})],
    ["JSON with empty audio", () => Response.json({ audio_data: "" })],
    ["events with empty audio", () => streaming(...EMPTY_AUDIO)],
    ["an error in JSON", () => Response.json({ error: { message: "no" } })],
    ["base64 that can't be decoded", () => Response.json({ audio_data: "?" })],
    ["events without audio", () => streaming({ type: "speech.audio.done" })],
    ["an error event", () => streaming({ error: { message: "no" } })],
  ])("returns an error for %s, and charges nothing", async (_, answer) => {
    const { bindings } = answering(answer);
    const before = await balanceOf(key);
    const response = await speak({ body: { model: VOXTRAL }, bindings });
    expect([response.status, await balanceOf(key)]).toEqual([502, before]);
  });

  it.each([
    ["a file", () => new Response(streamOf(["RIFF", "more"], "breaks off"))],
    [
      "JSON",
      () => {
        const headers = { "content-type": "application/json" };
        return new Response(streamOf(['{"audio_data":"AAAABBBB']), { headers });
      },
    ],
  ])("ends the response early, without a charge, if %s breaks off", async (_, answer) => {
    const { bindings } = answering(answer);
    const before = await balanceOf(key);
    const response = await speak({ body: { model: VOXTRAL }, bindings });
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow(/incomplete/);
    await expect.poll(() => balanceOf(key)).toBe(before);
  });

  it("charges the whole text if the client disconnects before the first byte", async () => {
    const client = new AbortController();
    const respondAfterDisconnect = async () => {
      client.abort();
      await scheduler.wait(100);
      return file("RIFF");
    };
    const { bindings } = answering(respondAfterDisconnect, { DRAIN_S: "0", DRAIN_THINKING_S: "0" });
    const before = await balanceOf(key);
    await speak({ body: { model: VOXTRAL }, bindings, signal: client.signal });
    await expect.poll(async () => before - (await balanceOf(key))).toBe(VOXTRAL_COST);
  });

  it("charges the whole text if the client disconnects during the file", async () => {
    const endless = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await scheduler.wait(5);
        controller.enqueue(new Uint8Array(1000));
      },
    });
    const { bindings } = answering(() => new Response(endless), {
      DRAIN_S: "0",
      DRAIN_THINKING_S: "0",
    });
    const before = await balanceOf(key);
    const response = await speak({ body: { model: VOXTRAL }, bindings });
    await response.body?.cancel();
    await expect.poll(async () => before - (await balanceOf(key))).toBe(VOXTRAL_COST);
  });
});
