import type { CatalogueEntry } from "./entry.ts";
import { ANTHROPIC_MODELS } from "./makers/anthropic.ts";
import { CHINESE_MODELS } from "./makers/chinese-makers.ts";
import { GOOGLE_MODELS } from "./makers/google.ts";
import { OPENAI_MODELS } from "./makers/openai.ts";
import { OPEN_WEIGHTS_MODELS } from "./makers/open-weights.ts";
import { OTHER_MAKERS_MODELS } from "./makers/other-makers.ts";

/**
 * Every built-in model beside the sandbox's, with the facts and dated prices of their providers
 * (the pages that each file names). A price that nobody knows is no route.
 * `npm run prices` lists them by age.
 */
export const CATALOGUE: readonly CatalogueEntry[] = [
  ...OPENAI_MODELS,
  ...ANTHROPIC_MODELS,
  ...GOOGLE_MODELS,
  ...OTHER_MAKERS_MODELS,
  ...OPEN_WEIGHTS_MODELS,
  ...CHINESE_MODELS,
];
