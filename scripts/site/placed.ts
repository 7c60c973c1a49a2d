/** Replacements of the examples' shell variables. */
type Replacements = {
  /** The region's URL without a trailing slash. */
  readonly origin: string;
  /** The key as an expression or text of the block's language. */
  readonly key: string;
};

/**
 * Returns a block that works in an empty shell. Sets the URL and the key, so that no SDK falls back
 * to its vendor's URL. Longer texts are replaced first.
 */
export function fillPlaceholders(block: string, { origin, key }: Replacements): string {
  const written: readonly (readonly [written: string, own: string])[] = [
    ["http://127.0.0.1:8787", origin],
    ["http://127.0.0.1:8788", "https://ANOTHER-REGION"],
    ["$(demo us.base_url)", "https://ANOTHER-REGION/v1"],
    ["$(demo eu.global_key)", "YOUR_GLOBAL_KEY"],
    ["$(demo eu.org_id)", "YOUR_ORG_ID"],
    ["${URL%/v1}", origin],
    ["URL=$URL KEY=$KEY node", "node"],
    ["$URL", `${origin}/v1`],
    ["$JSON", "Content-Type: application/json"],
    ["process.env.URL", `"${origin}/v1"`],
    ["process.env.KEY", `"${key}"`],
    ['os.environ["URL"].removesuffix("/v1")', `"${origin}"`],
    ['os.environ["URL"]', `"${origin}/v1"`],
    ['os.environ["KEY"]', `"${key}"`],
  ];
  const text = written.reduce((known, [from, to]) => known.replaceAll(from, to), block);
  return /\bos\./.test(text) ? text : text.replace(/^import os\n/m, "");
}

/** Returns the install command in a block's info string, or "". */
export function installCommandOf(info: string): string {
  return /\b(?:npm|pip) install [^;]+/.exec(info)?.[0].trim() ?? "";
}
