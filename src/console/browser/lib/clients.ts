import { nameWithoutAuthor } from "./names.ts";

export type ClientSetupBlocks = {
  readonly name: string;
  readonly parts: readonly { readonly kind: "text" | "code"; readonly text: string }[];
};

/** A placeholder for the region's address in examples. */
export const ORIGIN_PLACEHOLDER = "https://this-region.invalid";
export const KEY_PLACEHOLDER = "YOUR_KEY";

const MODELS_BY_CLIENT: Readonly<Record<string, readonly [large: RegExp, small: RegExp]>> = {
  "Claude Code": [/^anthropic\/claude-(?:opus|sonnet)-/, /^anthropic\/claude-haiku-/],
  Codex: [/^openai\/gpt-\d/, /^$/],
};

/**
 * Replaces aliases with models of the client's vendor, if any, because the client knows their
 * limits.
 */
export function replaceAliasesForClient(
  client: string,
  text: string,
  live: readonly string[],
): string {
  const [large, small] = MODELS_BY_CLIENT[client] ?? [/^$/, /^$/];
  return text
    .replaceAll(/\bsmart\b/g, nameOf(live.find((id) => large.test(id))) ?? "smart")
    .replaceAll(/\bfast\b/g, nameOf(live.find((id) => small.test(id))) ?? "fast");
}

function nameOf(id: string | undefined): string | undefined {
  const name = id && nameWithoutAuthor(id);
  return name?.startsWith("claude-") === true ? name.replaceAll(".", "-") : name;
}
