import { expect, it } from "vitest";
import { readUsage } from "../../src/providers/openai-compatible/usage.ts";
import { wireUsage } from "../../src/providers/wire-usage.ts";
import { COMPATIBLE_ROWS } from "./usage-rows-compatible.ts";
import { NATIVE_ROWS } from "./usage-rows-native.ts";
import type { Reader, Row } from "./usage-row.ts";

const embeddings: Reader = (answer) => readUsage(answer["usage"], "embeddings");

/** What counts what; each family of upstreams has its rows. */
const ROWS: readonly Row[] = [...COMPATIBLE_ROWS, ...NATIVE_ROWS];

it.each(ROWS)("$upstream", ({ reader, raw, want, wire }) => {
  const usage = reader(raw);
  const numbers = usage && [
    usage.input,
    usage.cacheRead,
    usage.cacheWrite,
    usage.output,
    usage.reasoning,
  ];
  expect(numbers).toEqual(want);
  const shown = usage && wireUsage(usage, "chat");
  const counts = shown && [
    shown["prompt_tokens"],
    shown["completion_tokens"],
    shown["total_tokens"],
  ];
  expect(counts).toEqual(wire);
});

it.each([
  ["OpenAI", { prompt_tokens: 8, total_tokens: 8 }, 8],
  [
    "Mistral",
    { prompt_tokens: 15, total_tokens: 15, completion_tokens: 0, prompt_audio_seconds: null },
    15,
  ],
  ["Voyage, which says the total alone", { total_tokens: 12 }, 12],
  ["odd", { prompt_tokens: -1, total_tokens: 12 }, null],
])("embeddings of %s", (_name, usage, input) => {
  const want =
    input === null ? null : { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
  expect(embeddings({ usage })).toEqual(want);
});
