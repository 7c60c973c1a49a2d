import { createHash } from "node:crypto";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openApiText } from "../openapi.ts";
import { apiPage } from "./api.ts";
import { CONSOLE_HEADERS, buildConsole, writeApiTypes } from "./console.ts";
import { escape, renderMarkdown } from "./markdown.ts";
import type { Heading } from "./markdown.ts";
import { replaceSite } from "./replace.ts";
import { writeTokenTable } from "./tokens.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const DOCS = path.join(ROOT, "docs");
/** Where wrangler.toml has the Worker's static assets. */
export const SITE = path.join(ROOT, "site");
const KEPT = new Set([".gitignore", ".assetsignore"]);
/** Groups of the tree at the left; every other page stands below the last one. */
const TREE: readonly (readonly [string, readonly string[]])[] = [
  ["Begin", ["README", "start", "concepts", "clients", "sandbox"]],
  ["Use it", ["console", "keys", "end-users", "usage", "errors", "limits", "webhooks", "idempotency", "regions", "api"]],
  ["", ["models-and-prices"]],
  ["Run it", ["operate", "alerts", "runbooks", "configuration", "metrics", "providers", "residency", "deploy"]],
  ["", ["security", "figures"]],
];
const HEADERS = `/*
  Strict-Transport-Security: max-age=31536000
/docs/*
  Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
/docs/assets/*
  Cache-Control: public, max-age=31536000, immutable
/openapi.json
  Access-Control-Allow-Origin: *
  X-Content-Type-Options: nosniff
`;

/** A page: its path below docs without the ending, and its Markdown. */
type Page = { readonly name: string; readonly markdown: string };
type Entry = {
  readonly url: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
};

/** What was built: how many documents, and the bytes of the console's scripts, gzipped. */
type Built = { readonly pages: number; readonly consoleBytes: number };

/** Writes the documents, their search index, llms.txt, the OpenAPI document and the console into `folder`. */
export async function buildSite(folder = SITE): Promise<Built> {
  mkdirSync(folder, { recursive: true });
  const fresh = mkdtempSync(path.join(tmpdir(), "turnpike-site-"));
  try {
    const built = await writeSite(fresh);
    replaceSite(fresh, folder, KEPT);
    return built;
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

async function writeSite(folder: string): Promise<Built> {
  const openApi = await openApiText();
  const pages = [...readPages(), { name: "api", markdown: apiPage(openApi) }];
  const out = path.join(folder, "docs");
  for (const kept of ["pictures", "operate"]) {
    cpSync(path.join(DOCS, kept), path.join(out, kept), { recursive: true });
  }
  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  };
  const hashed = (name: string, ending: string, text: string): string => {
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 10);
    const url = `/docs/assets/${name}.${hash}.${ending}`;
    write(url, text);
    return url;
  };
  const assets = {
    style: hashed(
      "style",
      "css",
      readFileSync(path.join(import.meta.dirname, "style.css"), "utf8"),
    ),
    script: hashed("page", "js", readFileSync(path.join(import.meta.dirname, "page.js"), "utf8")),
    index: hashed("search", "json", JSON.stringify(pages.flatMap(entriesOf))),
  };
  for (const page of pages) {
    const file = page.name.replace(/README$/, "index");
    write(`docs/${file}.html`, htmlOf(page, pages, assets));
    write(`docs/${file}.md`, page.markdown);
  }
  writeTokenTable(folder);
  write("openapi.json", openApi);
  write("llms.txt", llmsText(pages));
  write("_headers", HEADERS + CONSOLE_HEADERS);
  writeApiTypes(openApi);
  return { pages: pages.length, consoleBytes: (await buildConsole(folder)).all };
}

function readPages(): Page[] {
  const names = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).toSorted();
  return names
    .filter((name) => name.endsWith(".md"))
    .map((name) => {
      return { name: name.slice(0, -3), markdown: readFileSync(path.join(DOCS, name), "utf8") };
    });
}

function urlOf(name: string): string {
  return `/docs/${name.replace(/(^|\/)README$/, "$1")}`;
}

function titleOf({ markdown }: Page): string {
  return (/^# (.+)$/m.exec(markdown)?.[1] ?? "").replaceAll("`", "");
}

/** Where a link of a page leads on the site; null for what is in the repository alone. */
function hrefOf(page: Page, link: string): string | null {
  if (/^(?:https:|#|\/)/.test(link)) return link;
  const [file = "", anchor] = link.split("#");
  const target = path.posix.join(path.posix.dirname(page.name), file);
  if (target.startsWith("..")) return null;
  const url = target.endsWith(".md") ? urlOf(target.slice(0, -3)) : `/docs/${target}`;
  return anchor === undefined ? url : `${url}#${anchor}`;
}

function htmlOf(
  page: Page,
  pages: readonly Page[],
  assets: Readonly<Record<string, string>>,
): string {
  const { html, headings } = renderMarkdown(page.markdown, (link) => hrefOf(page, link));
  const twin = `/docs/${page.name.replace(/README$/, "index")}.md`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(titleOf(page))} - Turnpike</title>
<link rel="stylesheet" href="${assets["style"]}">
<link rel="alternate" type="text/markdown" href="${twin}">
<script src="${assets["script"]}" defer></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header><a href="/docs/">Turnpike</a>
<form role="search"><input id="search" type="search" placeholder="Search, or press /" aria-label="Search the documents" autocomplete="off" data-index="${assets["index"]}"><ul id="found"></ul></form>
<button id="scheme" type="button">light / dark</button></header>
<div class="layout">
<nav class="tree" aria-label="Pages">${tree(page, pages)}</nav>
<main id="content">
${html}<footer><a href="${twin}">This page as Markdown</a></footer>
</main>
<nav class="here" aria-label="On this page">${onThisPage(headings)}</nav>
</div>
</body>
</html>
`;
}

function tree(page: Page, pages: readonly Page[]): string {
  const placed = new Set(TREE.flatMap(([, names]) => names));
  const rest = pages.filter(({ name }) => !placed.has(name)).map(({ name }) => name);
  const groups = [...TREE, ["Change it", rest] as const];
  const item = (name: string): string => {
    const shown = pages.find((other) => other.name === name);
    if (shown === undefined) throw new Error(`no page docs/${name}.md`);
    const current = name === page.name ? ' aria-current="page"' : "";
    return `<li><a href="${urlOf(name)}"${current}>${escape(titleOf(shown))}</a></li>`;
  };
  return groups
    .map(([title, names]) => {
      const head = title === "" ? "" : `<h2>${escape(title)}</h2>`;
      return `${head}<ul>${names.map(item).join("")}</ul>`;
    })
    .join("");
}

function onThisPage(headings: readonly Heading[]): string {
  const items = headings
    .filter(({ depth }) => depth === 2 || depth === 3)
    .map(({ title, anchor }) => `<li><a href="#${escape(anchor)}">${escape(title)}</a></li>`);
  return items.length < 2 ? "" : `<ul>${items.join("")}</ul>`;
}

/** What is found of a page: each part under its heading, without its code's signs. */
function entriesOf(page: Page): Entry[] {
  const title = titleOf(page);
  const { headings } = renderMarkdown(page.markdown, () => null);
  const parts = page.markdown
    .replaceAll(/^```[^]*?^```$/gm, "")
    .split(/^#{1,6} .+$/m)
    .slice(1);
  return headings.map(({ title: heading, anchor }, i) => {
    const text = (parts[i] ?? "").replaceAll(/[`*|]|\]\([^)]*\)|\[|-{3,}/g, " ");
    const url = `${urlOf(page.name)}#${anchor}`;
    return { url, title, heading, text: text.replaceAll(/\s+/g, " ").trim().slice(0, 600) };
  });
}

/** What a language model needs to find its way: https://llmstxt.org. */
function llmsText(pages: readonly Page[]): string {
  const lines = pages
    .filter(({ name }) => name !== "README" && !name.startsWith("internals/"))
    .map((page) => `- [${titleOf(page)}](/docs/${page.name}.md)`);
  return `# Turnpike

> A model gateway that speaks OpenAI's API and takes prepaid credits, in two regions.

## Documents

${lines.join("\n")}

## API

- [OpenAPI 3.1](/openapi.json)
`;
}
