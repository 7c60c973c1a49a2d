/** What stands for the region's address in the blocks of pages for customers, until a script knows it. */
export const ORIGIN = "https://YOUR-REGION";
export const KEY = "YOUR_KEY";

/**
 * What the examples read from the shell of who runs a region on a laptop, and what stands for it on a customer's
 * page; the longer words come first.
 */
const PLACED: readonly (readonly [written: string | RegExp, placed: string])[] = [
  ["http://127.0.0.1:8787", ORIGIN],
  ["http://127.0.0.1:8788", "https://ANOTHER-REGION"],
  ["${URL%/v1}", ORIGIN],
  ["URL=$URL KEY=$KEY ", `URL=${ORIGIN}/v1 KEY=${KEY} `],
  ["$URL", `${ORIGIN}/v1`],
  ['"$AUTH"', `"Authorization: Bearer ${KEY}"`],
  ['"$JSON"', '"Content-Type: application/json"'],
  [/\$KEY\b(?!_)/g, KEY],
  [/ \| field ([\w.]+)/g, " | jq -r .$1"],
  [/^(.*\bdemo [\w.]+.*)$/gm, ""],
];
const SETTINGS = / ?[^.\n]*\[start\]\(start\.md#settings\)[^.\n]*\./g;
/** Sentences of who has the repository: they are in the pages for operators too. */
const NOT_THEIRS = /^.*(?:`npm |npm run|\.dev\/).*$\n?/gm;

/** A page as a customer reads it: blocks with an address and a key in them, and no word of the repository. */
export function forCustomers(markdown: string): string {
  const parts = markdown.split(/^(```[^\n]*\n[^]*?^```)$/m);
  return parts
    .map((part, i) =>
      i % 2 === 1 ? placed(part) : part.replaceAll(SETTINGS, "").replaceAll(NOT_THEIRS, ""),
    )
    .join("");
}

function placed(block: string): string {
  if (block.startsWith("```sh") && /npm (?:run|ci|start)/.test(block)) return "";
  return PLACED.reduce((text, [written, own]) => text.replaceAll(written, own), block);
}
