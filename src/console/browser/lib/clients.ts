export type ClientBlocks = {
  readonly name: string;
  readonly parts: readonly { readonly kind: "text" | "code"; readonly text: string }[];
};

/** The region's address in generated examples. */
export const EXAMPLE_ORIGIN = "https://this-region.invalid";
/** The key in generated examples. */
export const YOUR_KEY = "YOUR_KEY";

const MODELS_BY_CLIENT: Readonly<Record<string, readonly [large: RegExp, small: RegExp]>> = {
  "Claude Code": [/^anthropic\/claude-(?:opus|sonnet)-/, /^anthropic\/claude-haiku-/],
  Codex: [/^openai\/gpt-\d/, /^$/],
};

/**
 * Replaces aliases by a model of the client's vendor, if one is for sale, because the client knows
 * that model's limits.
 */
export function withFittingModels(client: string, text: string, live: readonly string[]): string {
  const [large, small] = MODELS_BY_CLIENT[client] ?? [/^$/, /^$/];
  return text
    .replaceAll(/\bsmart\b/g, nameOf(live.find((id) => large.test(id))) ?? "smart")
    .replaceAll(/\bfast\b/g, nameOf(live.find((id) => small.test(id))) ?? "fast");
}

function nameOf(id: string | undefined): string | undefined {
  const name = id?.slice(id.indexOf("/") + 1);
  return name?.startsWith("claude-") === true ? name.replaceAll(".", "-") : name;
}
