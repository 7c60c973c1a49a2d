import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Makes `folder` what `fresh` is, but for what it keeps. A file that is the same is not touched, and one that differs is
 * there whole at every moment: a region may be serving from the folder, and another start building it.
 */
export function replaceSite(fresh: string, folder: string, kept: ReadonlySet<string>): void {
  const files = filesIn(fresh);
  for (const name of files) {
    const [from, to] = [readFileSync(path.join(fresh, name)), path.join(folder, name)];
    if (existsSync(to) && readFileSync(to).equals(from)) continue;
    mkdirSync(path.dirname(to), { recursive: true });
    const beside = `${to}.${process.pid}`;
    writeFileSync(beside, from);
    renameSync(beside, to);
  }
  const wanted = new Set(files);
  for (const name of filesIn(folder)) {
    const isAnothers = /\.\d+$/.test(name); // that it is about to move
    if (!wanted.has(name) && !kept.has(name) && !isAnothers) rmSync(path.join(folder, name), { force: true });
  }
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}
