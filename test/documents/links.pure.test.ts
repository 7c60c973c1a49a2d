import { existsSync, globSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { anchorsOf, brokenLinks } from "./links.ts";
import { blocksOf, examplesOf, pagePaths, readPage, ROOT } from "./pages.ts";

const README_LINES_MAX = 200;
const MAP_LINES_MAX = 120;

/** Every file that isn't installed, generated or at the root, as a path from the root. */
const FILES = ["src", "scripts", "docs", "test", "migrations"].flatMap((folder) =>
  globSync(`${folder}/**/*.*`, {
    cwd: ROOT,
    exclude: (name) => path.basename(name) === "node_modules",
  }),
);

it.each(pagePaths())("a page contains no broken link or anchor: %s", (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

it("docs/README.md links to every page below docs, directly or through other pages", () => {
  const reached = new Set(["docs/README.md"]);
  for (const page of reached) {
    for (const [, file = ""] of readPage(page).matchAll(/\]\(([^()\s:#]+\.md)(?:#[^)]*)?\)/g)) {
      reached.add(new URL(file, `https://docs.test/${page}`).pathname.slice(1));
    }
  }
  expect(pagePaths().filter((page) => page.startsWith("docs/") && !reached.has(page))).toEqual([]);
});

it("every shell block is tested or has a reason why not, and every code block is closed", () => {
  for (const page of pagePaths()) {
    const markdown = readPage(page);
    expect(() => examplesOf(markdown), page).not.toThrow();
    expect(markdown.match(/^```/gm)?.length ?? 0, page).toBe(2 * blocksOf(markdown).length);
  }
});

it("README.md and src/README.md stay below their maximum number of lines", () => {
  expect(readPage("README.md").split("\n").length - 1).toBeLessThanOrEqual(README_LINES_MAX);
  expect(readPage("src/README.md").split("\n").length - 1).toBeLessThanOrEqual(MAP_LINES_MAX);
});

it("every document that a file refers to exists", () => {
  const files = FILES.filter(
    (file) => /\.(?:ts|md)$/.test(file) && !/^\w+\/documents\//.test(file),
  );
  const named = [...files, "README.md", "wrangler.toml"].flatMap((file) =>
    [...readPage(file).matchAll(/(?<![\w/.-])[\w/-][\w./-]*\w{2}\.md\b/g)]
      .filter(([name]) => !name.endsWith("README.md") && !existsSync(path.join(ROOT, name)))
      .filter(([name]) => !existsSync(path.join(ROOT, path.dirname(file), name)))
      .filter(([name]) => !existsSync(path.join(ROOT, "docs", name)))
      .map(([name]) => `${file}: ${name}`),
  );
  expect(named).toEqual([]);
});

it("every source file that comments, src/README.md or decisions refer to exists", () => {
  const files = FILES.filter((file) => !/^docs\/(?!internals\/)/.test(file));
  const known = new Set(files.flatMap(endingsOf));
  const isThere = (name: string): boolean => known.has(name) || existsSync(path.join(ROOT, name));
  const named = files
    .filter((file) => /\.(?:tsx?|md)$/.test(file))
    .flatMap((file) => {
      const text = readPage(file);
      const comments = text.match(/\/\*[\s\S]*?\*\/|(?<![:"'`])\/\/[^\n]*/g) ?? [];
      const words = file.endsWith(".md") ? text : comments.join("\n");
      return [...words.matchAll(/(?<![\w/.@<>{}*-])[\w./-]*\w\.(?:tsx?|sql)\b(?![\w(/])/g)]
        .map(([name]) => name.replace(/^(?:\.\.?\/)+/, ""))
        .filter((name) => !ELSEWHERE.test(name) && !isThere(name))
        .map((name) => `${file}: ${name}`);
    });
  expect(named).toEqual([]);
});
/** Returns the path and each part of it that starts after a slash. */
function endingsOf(file: string): string[] {
  const parts = file.split("/");
  return parts.map((_, at) => parts.slice(at).join("/"));
}
/** Suffixes, an example, and a file of workerd. */
const ELSEWHERE = /^\.\w|^0002_what\.sql$|(?:^|\/)ai-api\.ts$/;

/** Returns a test file's path from `test/` without suffixes, as the table shows it. */
const stemOf = (file: string): string => file.replace(/(?:\.(?:pure|long))?\.test\.ts$/, "");

it("test/README.md lists every test folder, and lists only existing tests", () => {
  const all = FILES.filter((file) => file.startsWith("test/")).map((file) => file.slice(5));
  const page = readPage("test/README.md");
  const rows = page.split("\n").filter((line) => line.startsWith("|"));
  const named = rows.flatMap((row) =>
    [...row.matchAll(/`([\w-]+(?:\/[\w*-]+)*\*?)`/g)].map(([, name = ""]) => name),
  );
  const patterns = named.map((name) => new RegExp(`^${name.replaceAll("*", ".*")}$`));
  const stems = all.filter((name) => name.endsWith(".test.ts")).map(stemOf);
  const listed = stems.filter((stem) => patterns.some((one) => one.test(stem)));
  const folders = new Set(listed.map((stem) => path.dirname(stem)));
  expect(stems.filter((stem) => !folders.has(path.dirname(stem)))).toEqual([]);
  expect(named.filter((_, i) => !stems.some((stem) => patterns[i]?.test(stem)))).toEqual([]);
  const files = [...page.matchAll(/`(\w[\w./-]*\.ts)`/g)].map(([, name = ""]) => name);
  const isThere = ["test", "."].map(
    (from) => (name: string) => existsSync(path.join(ROOT, from, name)),
  );
  expect(files.filter((name) => !isThere.some((one) => one(name)))).toEqual([]);
});

it("the link check finds a broken link to a missing file, anchor or address", () => {
  const links = "[a](start.md) [b](none.md) [c](start.md#none) [d](#here) [e](#gone) [f](http://x)";
  expect(brokenLinks("docs/limits.md", `# Here\n\n${links}\n\n\`[g](none.md)\``)).toEqual([
    "none.md",
    "start.md#none",
    "#gone",
    "http://x",
  ]);
});

it("the link check computes the anchors of headings like GitHub", () => {
  const page = "# `end_user` & you\n## Twice\n## Twice\n```sh\n# no heading\n```\n";
  expect([...anchorsOf(page)]).toEqual(["end_user--you", "twice", "twice-1"]);
});
