import type { CatalogEntry } from "./entry.ts";
import { ANTHROPIC_MODELS } from "./authors/anthropic.ts";
import { CHINESE_MODELS } from "./authors/chinese-authors.ts";
import { GOOGLE_MODELS } from "./authors/google.ts";
import { OPENAI_MODELS } from "./authors/openai.ts";
import { OPEN_WEIGHTS_MODELS } from "./authors/open-weights.ts";
import { OTHER_AUTHORS_MODELS } from "./authors/other-authors.ts";

/**
 * All built-in models except the sandbox's. Each file names its sources. `npm run prices` lists
 * prices by age.
 */
export const CATALOG: readonly CatalogEntry[] = [
  ...OPENAI_MODELS,
  ...ANTHROPIC_MODELS,
  ...GOOGLE_MODELS,
  ...OTHER_AUTHORS_MODELS,
  ...OPEN_WEIGHTS_MODELS,
  ...CHINESE_MODELS,
];
