import type { UpstreamCall } from "../contract/upstream.ts";

/** Headers of a response. A faulty provider reports other numbers of characters, or none. */
type Reported = { readonly [Header in "character-cost" | "x-character-count"]?: string };

const FORMATS: ReadonlySet<string | null> = new Set([
  "mp3_44100_128",
  "opus_48000_64",
  "pcm_24000",
]);
const FIELDS: ReadonlySet<string> = new Set(["text", "model_id"]);
const PATH = /^\/v1\/text-to-speech\/(\w+)\/stream$/;
export const ELEVENLABS_KEY = "elevenlabs.canary.secret";
export const ELEVENLABS_VOICE = "JBFqnCBsd6RMkjVDRZzb";
export const ELEVENLABS_AUDIO = ["ID3", "audio", "end"];

/**
 * Answers a request to ElevenLabs' API: an audio file in chunks, or an error in `detail` with the
 * documented statuses and codes (elevenlabs.io/docs, errors).
 */
export function answerElevenLabs(call: UpstreamCall, reported: Reported = {}): Response {
  const { pathname, searchParams } = new URL(call.url);
  if (call.headers["xi-api-key"] !== ELEVENLABS_KEY) {
    return problem(401, "invalid_api_key", `Invalid API key ${call.headers["xi-api-key"]}`);
  }
  const [, voice] = PATH.exec(pathname) ?? [];
  if (voice === undefined) return Response.json({ detail: "Not Found" }, { status: 404 });
  const unknown = Object.keys(call.body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) return invalid(["body", unknown], "Extra inputs are not permitted");
  if (!FORMATS.has(searchParams.get("output_format"))) {
    return invalid(["query", "output_format"], "Input should be one of the formats");
  }
  if (voice !== ELEVENLABS_VOICE) {
    return problem(404, "voice_not_found", `A voice with the voice_id '${voice}' was not found.`);
  }
  const text = String(call.body["text"]);
  if (text.includes("quota")) return problem(401, "quota_exceeded", "You have 0 credits.");
  if (text.includes("busy")) return problem(429, "system_busy", "The system is busy.");
  const headers = { "content-type": "audio/mpeg", "request-id": "r", ...reported };
  return new Response(chunks(ELEVENLABS_AUDIO), { headers });
}

function problem(status: number, code: string, message: string): Response {
  const detail = { type: "error", code, message, status: code, request_id: "r", param: null };
  return Response.json({ detail }, { status });
}

function invalid(loc: readonly string[], msg: string): Response {
  return Response.json({ detail: [{ loc, msg, type: "value_error" }] }, { status: 422 });
}

function chunks(parts: readonly string[]): ReadableStream<Uint8Array> {
  const remaining = parts.map((part) => new TextEncoder().encode(part));
  return new ReadableStream({
    pull(controller) {
      const part = remaining.shift();
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
}
