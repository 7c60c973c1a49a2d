import type { CatalogueEntry } from "./models.ts";

/** What each magic model forces; the sandbox provider knows how. */
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

const SANDBOX = {
  provider: "sandbox",
  released: "2026-01-01",
  pricedOn: "2026-01-01",
  input: 1_000_000,
  cached: 1_000_000,
  cacheWrite: 1_000_000,
  output: 2_000_000,
  minOutput: 1,
  // The sandbox counts its tokens so that the bare estimate bounds them.
  estimateFactor: 1,
  regions: ["global", "us", "eu"],
} as const;

/** The built-in models that answer without a network: 1 micro per input token, 2 per output token. */
export const SANDBOX_MODELS: readonly CatalogueEntry[] = [
  ...["echo", ...MAGIC].map(chat),
  {
    ...SANDBOX,
    id: "sandbox/embed",
    upstreamId: "embed",
    kind: "embeddings",
    output: 0,
    context: 8_192,
    maxOutput: 0,
    abilities: ["dimensions"],
    imageTokens: 0,
  },
];

function chat(name: string): CatalogueEntry {
  return {
    ...SANDBOX,
    id: `sandbox/${name}`,
    upstreamId: name,
    kind: "chat",
    context: 128_000,
    maxOutput: 16_384,
    abilities: ["tools", "vision"],
    imageTokens: 1_445,
  };
}
