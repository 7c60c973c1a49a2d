import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export const ROOT = path.join(import.meta.dirname, "../..");
const FENCE = /^```(.*)$/;
/** A line between an example and its answer: empty, or the start of a folded answer. */
const BETWEEN = /^(?:<details>|<summary>.*<\/summary>)?\s*$/;
const NO_RUN = /^sh no-run: \S/;

/** A fenced block of a page. */
type Block = {
  /** What stands behind the opening fence: a language, and after it anything. */
  readonly info: string;
  readonly text: string;
  /** Of the opening fence, from 1. */
  readonly line: number;
};

/** A block that a reader can run, and what the page says it prints; null when the page shows nothing. */
export type Example = Block & { readonly answer: string | null };

/** The pages that people read, as paths from the root: README, the map and everything below docs. */
export function pagePaths(): string[] {
  const below = readdirSync(path.join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
  const docs = below.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
  return ["README.md", "src/README.md", ...docs].toSorted();
}

export function readPage(page: string): string {
  return readFileSync(path.join(ROOT, page), "utf8");
}

/** The fenced blocks of a page, in order. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: { info: string; line: number; lines: string[] } | null = null;
  for (const [index, line] of markdown.split("\n").entries()) {
    const [, info] = FENCE.exec(line) ?? [];
    if (info === undefined) open?.lines.push(line);
    else if (open === null) open = { info, line: index + 1, lines: [] };
    else {
      blocks.push({ info: open.info, line: open.line, text: open.lines.join("\n") });
      open = null;
    }
  }
  return blocks;
}

/**
 * What can be run of a page: each `sh` block, with the `json` or `text` block right below it as its answer.
 * A block that cannot be run here says so and why: `sh no-run: <reason>`; one of several that say the same is
 * `sh tab: <language>`, and `needs: <command>` is what a reader without this repository runs first. Throws on any
 * other `sh`.
 */
export function examplesOf(markdown: string): Example[] {
  const blocks = blocksOf(markdown);
  const lines = markdown.split("\n");
  return blocks.flatMap((block, index) => {
    if (!/^(sh|bash|shell|console)\b/.test(block.info) || NO_RUN.test(block.info)) return [];
    if (!/^sh(?: tab: \w+)?(?: needs: (?:npm|pip) install .+)?$/.test(block.info)) {
      throw new Error(`line ${block.line}: \`\`\`${block.info} is not run`);
    }
    const next = blocks[index + 1];
    const end = block.line + block.text.split("\n").length + 1;
    const isAnswer =
      next !== undefined &&
      /^(json|text)$/.test(next.info) &&
      lines.slice(end, next.line - 1).every((line) => BETWEEN.test(line));
    return [{ ...block, answer: isAnswer ? next.text : null }];
  });
}
