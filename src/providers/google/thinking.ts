import type { JsonObject } from "../provider.ts";

/** How much a family of models may think: levels (Gemini 3 and later) or a budget in tokens (2.5). */
type Family = { readonly models: RegExp } & (
  | { readonly levels: Readonly<Record<string, string>> }
  | { readonly none: number; readonly least: number; readonly most: number }
);

const LEVELS = { low: "LOW", medium: "MEDIUM", high: "HIGH", xhigh: "HIGH", max: "HIGH" };
const FROM_LOW = { ...LEVELS, none: "LOW", minimal: "LOW" };
const FROM_MINIMAL = { ...LEVELS, none: "MINIMAL", minimal: "MINIMAL" };

/** The first that fits counts; a model that fits none is not told how to think. */
const FAMILIES: readonly Family[] = [
  { models: /^gemini-3-pro/, levels: { ...FROM_LOW, medium: "HIGH" } },
  // From 3.7 on, and in every Pro, MINIMAL is a 400 (recorded); LOW is known everywhere.
  { models: /^gemini-3(?:\.[0-6])?-flash/, levels: FROM_MINIMAL },
  { models: /^gemini-(?:[3-9]|\d\d)|^gemini-[a-z-]+-latest$/, levels: FROM_LOW },
  { models: /^gemini-2\.5-pro/, none: 128, least: 128, most: 32_768 },
  { models: /^gemini-2\.5-flash-lite/, none: 0, least: 512, most: 24_576 },
  { models: /^gemini-2\.5-flash/, none: 0, least: 1, most: 24_576 },
];

/** As Google's own OpenAI door counts them (ai.google.dev, OpenAI compatibility). */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};
/** Thoughts count towards the output cap: what is left for the answer itself. */
const THOUGHT_SHARE = 0.75;

/**
 * `thinkingConfig` for a `reasoning_effort`, or undefined where there is nothing to say. Not every
 * model can think nothing at all: `none` is then the least it can. `cap` is the output cap, in tokens.
 */
export function thinkingConfig(
  model: string,
  effort: unknown,
  cap: number | null,
): JsonObject | undefined {
  if (typeof effort !== "string") return undefined;
  const family = FAMILIES.find(({ models }) => models.test(model));
  if (family === undefined) return undefined;
  const includeThoughts = effort === "none" ? undefined : true;
  if ("levels" in family) return { thinkingLevel: family.levels[effort], includeThoughts };
  const { none, least, most } = family;
  if (effort === "none") return { thinkingBudget: none };
  const share = Math.max(least, Math.floor((cap ?? Infinity) * THOUGHT_SHARE));
  const budget = Math.min(Math.max(BUDGETS[effort] ?? least, least), most, share);
  return { thinkingBudget: budget, includeThoughts };
}

/** Whether calls carry ids and signatures that the next turn must bring back: Gemini 3 and later. */
export function signsItsCalls(model: string): boolean {
  return /^gemini-(?:[3-9]|\d\d)|^gemini-[a-z-]+-latest$/.test(model);
}
