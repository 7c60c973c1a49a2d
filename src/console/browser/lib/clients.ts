/** A client of the document about clients: its words and its blocks, in their order. */
export type ClientBlocks = {
  readonly name: string;
  readonly parts: readonly { readonly kind: "text" | "code"; readonly text: string }[];
};

/** What stands for the region's address in the blocks as they are served. */
export const ORIGIN = "https://this-region.invalid";
/** What stands for the reader's key in them. */
export const YOUR_KEY = "YOUR_KEY";

/** Clients that know their maker's models by name, and what they ask with: the larger model, and the smaller one. */
const OF_MAKERS: Readonly<Record<string, readonly [large: RegExp, small: RegExp]>> = {
  "Claude Code": [/^anthropic\/claude-(?:opus|sonnet)-/, /^anthropic\/claude-haiku-/],
  Codex: [/^openai\/gpt-\d/, /^$/],
};

/**
 * A block with a model of the client's own maker in place of the alias, where the region sells one: by its name there
 * the client knows how much it takes. `live`: ids of models, the better ones of a maker first.
 */
export function withFittingModels(client: string, text: string, live: readonly string[]): string {
  const [large, small] = OF_MAKERS[client] ?? [/^$/, /^$/];
  return text
    .replaceAll(/\bsmart\b/g, nameOf(live.find((id) => large.test(id))) ?? "smart")
    .replaceAll(/\bfast\b/g, nameOf(live.find((id) => small.test(id))) ?? "fast");
}

/** As the maker's own clients say it: `claude-opus-5-5` for `anthropic/claude-opus-5.5`. */
function nameOf(id: string | undefined): string | undefined {
  const name = id?.slice(id.indexOf("/") + 1);
  return name?.startsWith("claude-") === true ? name.replaceAll(".", "-") : name;
}
