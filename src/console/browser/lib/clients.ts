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
 * limits. Replaces other aliases that the key may not call with the first model of `allowed`.
 */
export function replaceAliasesForClient(
  client: string,
  text: string,
  live: readonly string[],
  allowed: readonly string[] = ["*"],
): string {
  const [large, small] = MODELS_BY_CLIENT[client] ?? [/^$/, /^$/];
  const callable = allowed.flatMap((one) => live.filter((id) => matches(one, id)));
  const modelFor = (alias: string, pattern: RegExp): string =>
    nameOf(callable.find((id) => pattern.test(id))) ??
    [alias].find((id) => allowed.some((one) => matches(one, id))) ??
    callable[0] ??
    alias;
  return text
    .replaceAll(/\bsmart\b/g, modelFor("smart", large))
    .replaceAll(/\bfast\b/g, modelFor("fast", small));
}

/** Reports whether an allowed model, `author/*` or `*` includes a model. */
function matches(allowed: string, id: string): boolean {
  return allowed.endsWith("*") ? id.startsWith(allowed.slice(0, -1)) : allowed === id;
}

function nameOf(id: string | undefined): string | undefined {
  const name = id && nameWithoutAuthor(id);
  return name?.startsWith("claude-") === true ? name.replaceAll(".", "-") : name;
}
