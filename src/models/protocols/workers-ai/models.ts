/** How the models of Workers AI differ, by pattern on their names (types of its SDK, 2026-11). */
type Family = {
  readonly pattern: RegExp;
  /**
   * Takes OpenAI's own request: json_schema in its envelope, `stop`, `strict`. The others want the
   * bare schema and know none of the rest.
   */
  readonly openAi?: true;
  /** The reasoning efforts that it knows, least first. */
  readonly efforts?: readonly string[];
  /** Its reasoning can only be switched, by `chat_template_kwargs.enable_thinking`. */
  readonly thinkingSwitch?: true;
  /** Tool call ids are nine letters and digits. */
  readonly nineLetterIds?: true;
  /** Embeddings: the pooling asked for, which is never to change: vectors of two poolings do not compare. */
  readonly pooling?: "cls";
};

/** The first that fits counts. */
const FAMILIES: readonly Family[] = [
  { pattern: /gpt-oss/, openAi: true, efforts: ["low", "medium", "high"] },
  { pattern: /glm-5\.3/, openAi: true, efforts: ["low", "high", "max"] },
  { pattern: /glm-5|deepseek-v4/, openAi: true, efforts: ["none", "low", "high", "max"] },
  { pattern: /kimi-k2\.5/, openAi: true, efforts: ["low", "medium", "high"] },
  { pattern: /kimi-k2\.6/, openAi: true, efforts: ["none", "high"] },
  { pattern: /qwen3\.8/, openAi: true, efforts: ["low", "medium", "xhigh"] },
  { pattern: /glm-4|nemotron|gemma-4/, openAi: true, thinkingSwitch: true },
  { pattern: /kimi|glm/, openAi: true },
  { pattern: /mistral/, nineLetterIds: true },
  { pattern: /bge-(small|base|large)/, pooling: "cls" },
];

const PLAIN: Family = { pattern: /^/ };

/** What is known of a model by its name there, e.g. `@cf/openai/gpt-oss-120b`. */
export function familyOf(model: string): Family {
  return FAMILIES.find((family) => family.pattern.test(model)) ?? PLAIN;
}

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * The effort nearest to the one asked for that the model knows, the dearer of two; null for a model
 * that knows none. Reasoning is switched off only where that was asked for.
 */
export function nearestEffort(asked: string, known: readonly string[]): string | null {
  if (known.includes(asked)) return asked;
  const distance = (effort: string) => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(asked));
  let nearest: string | null = null;
  for (const effort of known) {
    if (effort === "none") continue;
    if (nearest === null || distance(effort) <= distance(nearest)) nearest = effort;
  }
  return nearest;
}
