type Family = {
  readonly pattern: RegExp;
  /** Whether the models accept OpenAI's `json_schema`, `stop` and `strict`. */
  readonly acceptsOpenAiFields?: true;
  readonly efforts?: readonly string[];
  readonly hasThinkingSwitch?: true;
  readonly requiresNineCharacterIds?: true;
  /** Must never change, because vectors with different poolings can't be compared. */
  readonly pooling?: "cls";
};

const FAMILIES: readonly Family[] = [
  { pattern: /gpt-oss/, acceptsOpenAiFields: true, efforts: ["low", "medium", "high"] },
  { pattern: /glm-5\.3/, acceptsOpenAiFields: true, efforts: ["low", "high", "max"] },
  {
    pattern: /glm-5|deepseek-v4/,
    acceptsOpenAiFields: true,
    efforts: ["none", "low", "high", "max"],
  },
  { pattern: /kimi-k2\.5/, acceptsOpenAiFields: true, efforts: ["low", "medium", "high"] },
  { pattern: /kimi-k2\.6/, acceptsOpenAiFields: true, efforts: ["none", "high"] },
  { pattern: /qwen3\.8/, acceptsOpenAiFields: true, efforts: ["low", "medium", "xhigh"] },
  { pattern: /glm-4|nemotron|gemma-4/, acceptsOpenAiFields: true, hasThinkingSwitch: true },
  { pattern: /kimi|glm/, acceptsOpenAiFields: true },
  { pattern: /mistral/, requiresNineCharacterIds: true },
  { pattern: /bge-(small|base|large)/, pooling: "cls" },
];

const OTHER_FAMILY: Family = { pattern: /^/ };

export function workersAiFamilyOf(model: string): Family {
  return FAMILIES.find((family) => family.pattern.test(model)) ?? OTHER_FAMILY;
}

const ALL_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * Returns the nearest supported effort, or null. Prefers the higher of two equally near efforts.
 * Returns "none" only if requested.
 */
export function nearestEffort(requested: string, supported: readonly string[]): string | null {
  if (supported.includes(requested)) return requested;
  const distance = (effort: string) =>
    Math.abs(ALL_EFFORTS.indexOf(effort) - ALL_EFFORTS.indexOf(requested));
  let nearest: string | null = null;
  for (const effort of supported) {
    if (effort === "none") continue;
    if (nearest === null || distance(effort) <= distance(nearest)) nearest = effort;
  }
  return nearest;
}
