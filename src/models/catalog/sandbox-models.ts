import { REGIONS } from "../../shared/regions.ts";
import { chat, embeddings, modelsOf, pricesSeenOn, TV, TVR } from "./entry.ts";
import type { CatalogEntry } from "./entry.ts";

/** Models that echo the prompt. `think` reasons first, and `agent` calls any tool. */
const PLAIN = ["echo", "think", "agent"] as const;
const MAGIC = [
  "slow-first-byte",
  "slow-stream",
  "stall",
  "cut",
  "error-mid",
  "error-first",
  "no-usage",
  "huge-usage",
  "status-408",
  "status-429",
  "status-500",
  "status-503",
  "echo-key-401",
  "html",
  "bad-json",
  "split-utf8",
  "endless",
] as const;

const RELEASED = "2026-01-01";
const at = pricesSeenOn(RELEASED);
const EVERYWHERE = { regions: ["global", ...REGIONS] } as const;
const ESTIMATE = 1;

/**
 * The built-in models that need no network. They cost 1 micro-credit per input token, 2 per output
 * token, 2,000 per search unit, image or page, 1,000 per moderation, 100 per second of audio and 10
 * per character of speech.
 */
export const SANDBOX_MODELS: readonly CatalogEntry[] = [
  ...[...PLAIN, ...MAGIC].map((name) =>
    chat(
      `sandbox/${name}`,
      RELEASED,
      [128_000, 16_384, name === "think" ? TVR : TV, ESTIMATE, 1_445],
      [at("sandbox", name, [1, 2], EVERYWHERE)],
    ),
  ),
  embeddings(
    "sandbox/embed",
    RELEASED,
    [8_192, "any", ESTIMATE],
    [at("sandbox", "embed", [1], EVERYWHERE)],
  ),
  modelsOf("rerank")("sandbox/rerank", RELEASED, 8_192, [
    at("sandbox", "rerank", { search_unit: 0.002 }, EVERYWHERE),
  ]),
  modelsOf("moderation", ["vision"])("sandbox/moderation", RELEASED, 8_192, [
    at("sandbox", "moderation", { request: 0.001 }, EVERYWHERE),
  ]),
  modelsOf("image")("sandbox/image", RELEASED, 32_000, [
    at("sandbox", "image", { input: 1, image: 0.002 }, EVERYWHERE),
  ]),
  modelsOf("transcription")("sandbox/transcribe", RELEASED, 8_192, [
    at("sandbox", "transcribe", { second: 100 }, EVERYWHERE),
  ]),
  modelsOf("speech")("sandbox/speech", RELEASED, 8_192, [
    at("sandbox", "speech", { character: 10 }, EVERYWHERE),
  ]),
  modelsOf("ocr")("sandbox/ocr", RELEASED, 8_192, [
    at("sandbox", "ocr", { page: 0.002 }, EVERYWHERE),
  ]),
];
