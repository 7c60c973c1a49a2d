import { beforeAll, describe, expect, it } from "vitest";
import {
  ELEVENLABS_AUDIO,
  ELEVENLABS_KEY,
  ELEVENLABS_VOICE,
  answerElevenLabs,
} from "../fakes/elevenlabs.ts";
import {
  GEMINI_KEY,
  GEMINI_PCM,
  GEMINI_VOICE,
  answerGeminiSpeech,
} from "../fakes/gemini-speech.ts";
import type { GeminiSpeechFaults } from "../fakes/gemini-speech.ts";
import { balanceOf, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = {
  RESIDENCY: "relaxed",
  ELEVENLABS_API_KEY: ELEVENLABS_KEY,
  GEMINI_API_KEY: GEMINI_KEY,
};
const TEXT = "Grüße 🦊";
const [BYTES, POINTS] = [12, 7];
const TURBO = "elevenlabs/eleven-v4-turbo";
/** A voice that isn't one of the standard voices. */
const OWN_VOICE = "z9fAnlkpzviPz146aGWa";
/** Micro-credits per character, which equal dollars per million characters. */
const [TURBO_PRICE, V4_PRICE] = [40, 80];

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

function speak(body: object, changes: object = {}): Promise<Response> {
  const bindings = bindingsWith({ ...KEYS, ...changes });
  return send("/v1/audio/speech", { key, method: "POST", body, bindings });
}

/** Returns a charged response's bytes and receipt. The balance confirms the cost. */
async function charged(body: object) {
  const before = await balanceOf(key);
  const response = await speak(body);
  const bytes = new Uint8Array(await response.arrayBuffer());
  expect(response.status).toBe(200);
  const id = response.headers.get("x-request-id") ?? "";
  const found = await send(`/v1/generations/${id}`, { key });
  const receipt = await found.json<{
    cost_micro: number;
    held_micro: number;
    estimated: boolean;
  }>();
  expect(before - (await balanceOf(key))).toBe(receipt.cost_micro);
  expect(receipt.cost_micro).toBeLessThanOrEqual(receipt.held_micro);
  return { bytes, receipt, type: response.headers.get("content-type") };
}

const elevenLabsAnswering = (...reported: Parameters<typeof answerElevenLabs>[1][]) =>
  mockUpstream((call) => answerElevenLabs(call, ...reported));
const geminiAnswering = (answer: GeminiSpeechFaults = {}) =>
  mockUpstream((call) => answerGeminiSpeech(call, answer));
/** Returns the micro-credits of tokens at $0.50 and $9 per million. */
const geminiCost = (input: number, audio: number) => Math.ceil(input * 0.5 + audio * 9);
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe("POST /v1/audio/speech at ElevenLabs", () => {
  const body = { model: TURBO, input: TEXT, voice: ELEVENLABS_VOICE };
  it.each([
    ["mp3", "mp3_44100_128", "audio/mpeg"],
    ["opus", "opus_48000_64", "audio/opus"],
    ["pcm", "pcm_24000", "audio/pcm"],
  ])("sends the text, and forwards the audio as %s", async (format, output, contentType) => {
    const { calls } = elevenLabsAnswering();
    const { bytes, type } = await charged({ ...body, response_format: format });
    expect([textOf(bytes), type]).toEqual([ELEVENLABS_AUDIO.join(""), contentType]);
    expect(calls.map(({ url }) => url)).toEqual([
      `https://api.elevenlabs.io/v1/text-to-speech/${ELEVENLABS_VOICE}/stream?output_format=${output}`,
    ]);
    expect(calls[0]?.body).toEqual({ text: TEXT, model_id: "eleven_v4_turbo" });
  });

  it("adds a WAV header to PCM audio if the format is wav", async () => {
    elevenLabsAnswering();
    const { bytes, type } = await charged({ ...body, response_format: "wav" });
    expect(type).toBe("audio/wav");
    expectWav(bytes, ELEVENLABS_AUDIO.join(""));
  });

  it.each<[string, Parameters<typeof answerElevenLabs>[1], number, boolean]>([
    ["the held bytes if no count is reported", {}, BYTES, true],
    ["the reported characters", { "character-cost": "9" }, 9, false],
    ["the code points if fewer credits are reported", { "character-cost": "4" }, POINTS, false],
    ["at most the held bytes", { "x-character-count": "1000000" }, BYTES, false],
    ["the held bytes if zero is reported", { "character-cost": "0" }, BYTES, true],
    ["the held bytes if the count isn't a number", { "character-cost": "-1e9" }, BYTES, true],
  ])("charges by ElevenLabs's character count: %s", async (_, reported, characters, estimated) => {
    elevenLabsAnswering(reported);
    const { receipt } = await charged(body);
    expect(receipt).toMatchObject({
      held_micro: BYTES * TURBO_PRICE,
      cost_micro: characters * TURBO_PRICE,
      estimated,
    });
  });

  it("charges the price of each model", async () => {
    elevenLabsAnswering();
    const { receipt } = await charged({ ...body, model: "elevenlabs/eleven-v4" });
    expect(receipt.cost_micro).toBe(BYTES * V4_PRICE);
  });

  it.each([OWN_VOICE, "nobody", "../../user", "a/b", "a?b", "..", "a,b", ""])(
    "returns 400 for the voice %j, without a provider call or charge",
    async (voice) => {
      const { calls } = elevenLabsAnswering();
      const before = await balanceOf(key);
      const error = await errorOf(await speak({ ...body, voice }), 400);
      expect([error["param"], await balanceOf(key)]).toEqual(["voice", before]);
      expect(calls).toHaveLength(0);
    },
  );

  it("accepts only voices listed in ELEVENLABS_VOICES if the operator sets this variable", async () => {
    const { calls } = elevenLabsAnswering();
    const only = { ELEVENLABS_VOICES: ` ${OWN_VOICE}, other ` };
    const own = await speak({ ...body, voice: OWN_VOICE }, only);
    expect((await errorOf(own, 400))["param"]).toBe("voice"); // the fake service lacks this voice
    expect(calls.map(({ url }) => new URL(url).pathname)).toEqual([
      `/v1/text-to-speech/${OWN_VOICE}/stream`,
    ]);
    const standard = await speak(body, only);
    expect((await errorOf(standard, 400))["param"]).toBe("voice");
    expect(calls).toHaveLength(1);
  });

  it.each(["a/b", "a;b", ","])(
    "rejects all requests if ELEVENLABS_VOICES is %j",
    async (voices) => {
      const { calls } = elevenLabsAnswering();
      const response = await speak(body, { ELEVENLABS_VOICES: voices });
      expect([response.status, calls.length]).toEqual([503, 0]);
    },
  );

  it.each([
    ["quota", 502],
    ["busy", 503],
  ])("charges nothing if the provider returns the error %s", async (input, status) => {
    elevenLabsAnswering();
    const before = await balanceOf(key);
    const response = await speak({ ...body, input });
    expect([response.status, await balanceOf(key)]).toEqual([status, before]);
  });

  it("hides the provider's key", async () => {
    mockUpstream((call) =>
      answerElevenLabs({ ...call, headers: { "xi-api-key": "other.secret" } }),
    );
    const text = await (await speak(body)).text();
    expect(text).not.toMatch(/secret/);
  });

  it.each([
    ["response_format", { response_format: "flac" }],
    ["speed", { speed: 1.1 }],
    ["instructions", { instructions: "whisper" }],
  ])("rejects an unsupported %s with 400", async (param, more) => {
    const error = await errorOf(await speak({ ...body, ...more }), 400);
    expect(error["param"]).toBe(param);
  });

  it("charges the whole text if the client disconnects during the audio", async () => {
    const endless = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await scheduler.wait(5);
        controller.enqueue(new Uint8Array(1000));
      },
    });
    mockUpstream(() => new Response(endless, { headers: { "character-cost": "4" } }));
    const before = await balanceOf(key);
    const response = await speak(body, { DRAIN_S: "0", DRAIN_THINKING_S: "0" });
    await response.body?.cancel();
    await expect.poll(async () => before - (await balanceOf(key))).toBe(BYTES * TURBO_PRICE);
  });

  it("ends the response early, without a charge, if the provider's audio breaks off", async () => {
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(9)),
      pull: (controller) => controller.error(new Error("breaks off")),
    });
    mockUpstream(() => new Response(broken, { headers: { "character-cost": "4" } }));
    const before = await balanceOf(key);
    const response = await speak(body);
    await expect(response.arrayBuffer()).rejects.toThrow(/incomplete/);
    await expect.poll(() => balanceOf(key)).toBe(before);
  });
});

describe("POST /v1/audio/speech at Google", () => {
  const body = {
    model: "google/gemini-3.8-flash-tts",
    input: TEXT,
    voice: GEMINI_VOICE,
    response_format: "pcm",
  };
  /** The bytes of the text and an overhead of 64 tokens, and the output cap. */
  const [INPUT_HELD, AUDIO_HELD] = [BYTES + 64, 2_048 + 8 * BYTES];
  const HELD = geminiCost(INPUT_HELD, AUDIO_HELD);

  it("sends the text with a cap on audio tokens, and charges the counted tokens", async () => {
    const { calls } = geminiAnswering();
    const { bytes, type, receipt } = await charged(body);
    expect([textOf(bytes), type]).toEqual([GEMINI_PCM, "audio/pcm"]);
    expect(receipt).toMatchObject({
      held_micro: HELD,
      cost_micro: geminiCost(4, 50),
      estimated: false,
      lines: [
        { what: "input", tokens: 4 },
        { what: "audio_token", tokens: 50, price: 9_000_000 },
      ],
    });
    expect(calls[0]?.url).toMatch(/\/v1beta\/models\/gemini-3\.8-flash-tts:generateContent$/);
    expect(calls[0]?.body).toMatchObject({
      contents: [{ role: "user", parts: [{ text: TEXT }] }],
      generationConfig: { maxOutputTokens: AUDIO_HELD },
    });
  });

  it("joins the parts of the audio, and adds a WAV header if the format is wav", async () => {
    geminiAnswering({ parts: ["one, ", "two, ", "3"] });
    const { bytes, type } = await charged({ ...body, response_format: "wav" });
    expect(type).toBe("audio/wav");
    expectWav(bytes, "one, two, 3");
  });

  it("streams events, and reports the tokens in the last event", async () => {
    geminiAnswering();
    const { bytes } = await charged({ ...body, stream_format: "sse" });
    const events = [...textOf(bytes).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data ?? "") as object,
    );
    expect(events.at(-1)).toMatchObject({
      type: "speech.audio.done",
      usage: {
        input_tokens: 4,
        output_tokens: 50,
        total_tokens: 54,
        cost_micro: geminiCost(4, 50),
      },
    });
  });

  it.each<[string, object | null, number]>([
    ["no usage", null, HELD],
    ["no output", { promptTokenCount: 4 }, geminiCost(4, AUDIO_HELD)],
    [
      "an output of zero",
      { promptTokenCount: 4, candidatesTokenCount: 0 },
      geminiCost(4, AUDIO_HELD),
    ],
    ["no input", { candidatesTokenCount: 50 }, geminiCost(INPUT_HELD, 50)],
    ["far too many tokens", { promptTokenCount: 1e9, candidatesTokenCount: 1e9 }, HELD],
    [
      "thoughts",
      { promptTokenCount: 4, candidatesTokenCount: 5, thoughtsTokenCount: 6 },
      geminiCost(4, 11),
    ],
  ])("charges the reported tokens, but at most the hold, for %s", async (_, usage, micros) => {
    geminiAnswering({ usage });
    expect((await charged(body)).receipt.cost_micro).toBe(micros);
  });

  it.each<[string, GeminiSpeechFaults]>([
    ["a blocked prompt", { block: "PROHIBITED_CONTENT" }],
    ["a blocked response", { parts: [], finish: "SAFETY" }],
    ["a response without audio", { parts: [] }],
  ])("returns 400 for %s, and charges the reported tokens", async (_, answer) => {
    geminiAnswering({ ...answer, usage: { promptTokenCount: 4, candidatesTokenCount: 5 } });
    const before = await balanceOf(key);
    const error = await errorOf(await speak(body), 400);
    expect(error["param"]).toBe("input");
    await expect.poll(async () => before - (await balanceOf(key))).toBe(geminiCost(4, 5));
  });

  it("returns 502 for audio with an unexpected sample rate, and charges nothing", async () => {
    geminiAnswering({ type: "audio/l16; rate=48000; channels=1" });
    const before = await balanceOf(key);
    expect((await speak(body)).status).toBe(502);
    await expect.poll(() => balanceOf(key)).toBe(before);
  });

  it("charges the held amount if the client disconnects before the response", async () => {
    const client = new AbortController();
    mockUpstream(async (call) => {
      client.abort();
      await scheduler.wait(100);
      return answerGeminiSpeech(call);
    });
    const bindings = bindingsWith({ ...KEYS, DRAIN_S: "0", DRAIN_THINKING_S: "0" });
    const { signal } = client;
    const before = await balanceOf(key);
    await send("/v1/audio/speech", { key, method: "POST", body, bindings, signal });
    await expect.poll(async () => before - (await balanceOf(key))).toBe(HELD);
  });

  it("returns Google's error for an unknown voice", async () => {
    geminiAnswering();
    const error = await errorOf(await speak({ ...body, voice: "alloy" }), 400);
    expect(error["message"]).toMatch(/Voice name alloy is not supported/);
  });

  it.each([
    ["response_format", { response_format: "mp3" }],
    ["response_format", { response_format: undefined }],
    ["instructions", { instructions: "whisper" }],
    ["speed", { speed: 1.1 }],
  ])("rejects an unsupported %s with 400", async (param, more) => {
    const error = await errorOf(await speak({ ...body, ...more }), 400);
    expect(error["param"]).toBe(param);
  });
});

/** Expects 16-bit mono PCM at 24 kHz in a WAV file of unknown length. */
function expectWav(bytes: Uint8Array, pcm: string): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const names = [0, 8, 12, 36].map((at) => textOf(bytes.slice(at, at + 4)));
  expect(names).toEqual(["RIFF", "WAVE", "fmt ", "data"]);
  expect([4, 40].map((at) => view.getUint32(at, true))).toEqual([2 ** 32 - 1, 2 ** 32 - 1]);
  expect([16, 24, 28].map((at) => view.getUint32(at, true))).toEqual([16, 24_000, 48_000]);
  expect([20, 22, 32, 34].map((at) => view.getUint16(at, true))).toEqual([1, 1, 2, 16]);
  expect(textOf(bytes.slice(44))).toBe(pcm);
}
