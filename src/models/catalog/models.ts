import { CALL_KIND_NAMES, CALL_KINDS } from "../../shared/kinds.ts";
import type { CallKindWithoutOutput, SandboxRow } from "../../shared/kinds.ts";
import { REGIONS } from "../../shared/regions.ts";
import { chatModel, modelFactory, pricesSeenOn, TV, TVR } from "./entry.ts";
import type { CatalogEntry } from "./entry.ts";
import { ANTHROPIC_MODELS } from "./authors/anthropic.ts";
import { CHINESE_MODELS } from "./authors/chinese-authors.ts";
import { GOOGLE_MODELS } from "./authors/google.ts";
import { OPENAI_MODELS } from "./authors/openai.ts";
import { OPEN_WEIGHTS_MODELS } from "./authors/open-weights.ts";
import { OTHER_AUTHORS_MODELS } from "./authors/other-authors.ts";

/** Sandbox models that echo the prompt. `think` also reasons, and `agent` calls a tool. */
const PLAIN_MODELS = ["echo", "think", "agent"] as const;
const TEST_MODELS = [
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
const ESTIMATE_FACTOR = 1;

/**
 * The built-in models that need no network. Chat costs 1 micro-credit per input token and 2 per
 * output token. CALL_KINDS lists the prices of other kinds.
 */
export const SANDBOX_MODELS: readonly CatalogEntry[] = [
  ...[...PLAIN_MODELS, ...TEST_MODELS].map((name) =>
    chatModel(
      `sandbox/${name}`,
      RELEASED,
      [128_000, 16_384, name === "think" ? TVR : TV, ESTIMATE_FACTOR, 1_445],
      [at("sandbox", name, [1, 2], EVERYWHERE)],
    ),
  ),
  ...CALL_KIND_NAMES.flatMap((kind) => (kind === "chat" ? [] : [inputModel(kind)])),
];

function inputModel(kind: CallKindWithoutOutput): CatalogEntry {
  const { model, dollars, context = 8_192, abilities }: SandboxRow = CALL_KINDS[kind].sandbox;
  const routes = [at("sandbox", model, dollars, EVERYWHERE)];
  const entry = modelFactory(kind, abilities)(`sandbox/${model}`, RELEASED, context, routes);
  return kind === "embeddings" ? { ...entry, estimateFactor: ESTIMATE_FACTOR } : entry;
}

/** All built-in models except the sandbox's. Each author's file names its sources. */
export const CATALOG: readonly CatalogEntry[] = [
  ...OPENAI_MODELS,
  ...ANTHROPIC_MODELS,
  ...GOOGLE_MODELS,
  ...OTHER_AUTHORS_MODELS,
  ...OPEN_WEIGHTS_MODELS,
  ...CHINESE_MODELS,
];
