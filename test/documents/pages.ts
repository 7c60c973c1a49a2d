import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export const ROOT = path.join(import.meta.dirname, "../..");
const FENCE = /^```(.*)$/;
/**
 * Matches a line between an example and its output: an empty line, or the start of a folded output.
 */
const BETWEEN = /^(?:<details>|<summary>.*<\/summary>)?\s*$/;
const NO_RUN = /^sh no-run: \S/;

type Block = {
  /** The text after the opening fence: a language, and options. */
  readonly info: string;
  readonly text: string;
  /** The line number of the opening fence, from 1. */
  readonly line: number;
};

/** A block that readers can run, with its documented output, or null if the page shows none. */
export type Example = Block & { readonly answer: string | null };

/**
 * Returns the pages for people, as paths from the root: README, the map of the code and everything
 * below docs.
 */
export function pagePaths(): string[] {
  const below = readdirSync(path.join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
  const docs = below.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
  return ["README.md", "src/README.md", ...docs].toSorted();
}

export function readPage(page: string): string {
  return readFileSync(path.join(ROOT, page), "utf8");
}

/** Returns the fenced blocks of a page, in order. */
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
 * Returns the runnable blocks of a page: each `sh` block with the `json` or `text` block right
 * below it as its output. `sh no-run: <reason>` marks a block that can't run here. `sh tab:
 * <language>` marks one of several alternatives, and `needs: <command>` is the command to run first
 * without this repository. Throws for any other `sh` block.
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
