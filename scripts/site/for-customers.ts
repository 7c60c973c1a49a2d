import { installCommandOf, fillPlaceholders } from "./placed.ts";

/** Placeholder of the region's URL in customers' pages. */
export const ORIGIN = "https://YOUR-REGION";
export const KEY = "YOUR_KEY";

/** Replacements for the shell variables of local examples, longer ones first. */
const PLACED: readonly (readonly [written: string | RegExp, placed: string])[] = [
  ["$AUTH", `Authorization: Bearer ${KEY}`],
  [/\$KEY\b(?!_)/g, KEY],
  ["svc_sk_eu_live_...", KEY],
  ["docs/quickstart/", ""],
  ["docs/holds/", ""],
  [/ \| field ([\w.[\]]+)/g, " | jq -r .$1"],
];
const SETTINGS = / ?[^.\n]*\[start\]\(start\.md#settings\)[^.\n]*\./g;
/** Sentences for readers who have the repository. Pages for operators have such sentences too. */
const NOT_THEIRS = /^.*(?:`npm |npm run|\.dev\/).*$\n?/gm;

/**
 * Returns a page for customers, with placeholders in blocks and without sentences about the
 * repository.
 */
export function forCustomers(markdown: string): string {
  const parts = markdown.split(/^(```[^\n]*\n[^]*?^```)$/m);
  return parts
    .map((part, i) =>
      i % 2 === 1 ? ownBlock(part) : part.replaceAll(SETTINGS, "").replaceAll(NOT_THEIRS, ""),
    )
    .join("");
}

function ownBlock(block: string): string {
  const [info = ""] = block.split("\n", 1);
  if (info.startsWith("```sh") && /npm (?:run|ci|start)/.test(block)) return "";
  const text = PLACED.reduce(
    (known, [written, own]) => known.replaceAll(written, own),
    fillPlaceholders(block, { origin: ORIGIN, key: KEY }),
  );
  const needed = installCommandOf(info);
  if (needed === "") return text;
  const first = { sh: needed, js: `// ${needed}` }[info.slice(3, 5)] ?? `# ${needed}`;
  return text.replace("\n", `\n${first}\n`);
}
