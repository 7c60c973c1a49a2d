import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");

export type Checkout = { readonly name: string; readonly root: string };
export const NOW: Checkout = { name: "now", root: ROOT };

/** Exports a commit, branch or tag into a folder below `below`, next to the installed packages. */
export function checkOut(named: string, below: string): Checkout {
  const git = (...words: string[]): Buffer =>
    execFileSync("git", words, { cwd: ROOT, maxBuffer: 1 << 30 });
  const name = git("rev-parse", "--verify", "--short", `${named}^{commit}`).toString().trim();
  const root = path.join(below, "commit");
  mkdirSync(root, { recursive: true });
  const input = git("archive", "--format=tar", name);
  execFileSync("tar", ["-x", "-C", root], { input });
  symlinkSync(path.join(ROOT, "node_modules"), path.join(root, "node_modules"));
  return { name, root };
}
