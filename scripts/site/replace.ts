import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Makes `folder` equal to `fresh`, except for `kept` files. Leaves equal files alone and replaces
 * others atomically, because a region can serve the folder while another start builds it.
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
    const isAnothers = /\.\d+$/.test(name); // another build's temporary file
    if (!wanted.has(name) && !kept.has(name) && !isAnothers) rmSync(path.join(folder, name), { force: true });
  }
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}
