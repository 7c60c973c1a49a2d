import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { build } from "esbuild";
import { openApiText } from "../openapi.ts";
import { apiPages } from "./api.ts";
import { AUDIENCES, audienceOf, CHANGELOG, fileOf, redirectsOf, treeOf, urlOf } from "./audiences.ts";
import type { Audience, Page } from "./audiences.ts";
import { forCustomers } from "./for-customers.ts";
import type { Entry } from "./search.ts";
import { CONSOLE_HEADERS, buildConsole, writeApiTypes } from "./console.ts";
import { escapeHtml } from "./html.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Heading } from "./markdown.ts";
import { writeTokenTable } from "./tokens.ts";

/** Colors shared with the console. */
const TOKENS = path.join(import.meta.dirname, "../../src/console/browser/tokens.css");
const ROOT = path.join(import.meta.dirname, "../..");
const DOCS = path.join(ROOT, "docs");
/** The folder of static assets in wrangler.toml. */
export const SITE = path.join(ROOT, "site");
const KEPT = new Set([".gitignore", ".assetsignore"]);
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

/** The number of pages, and the gzipped bytes of the console's scripts. */
type BuiltSite = { readonly pages: number; readonly consoleBytes: number };

/**
 * Writes the pages, their search index, llms.txt, the OpenAPI document and the console into
 * `folder`.
 */
export async function buildSite(folder = SITE): Promise<BuiltSite> {
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

/**
 * Makes `folder` equal to `fresh`, except for `kept` files. Leaves equal files alone and replaces
 * others atomically, because a region can serve the folder while another start builds it.
 */
function replaceSite(fresh: string, folder: string, kept: ReadonlySet<string>): void {
  const files = filesIn(fresh);
  for (const name of files) {
    const [from, to] = [readFileSync(path.join(fresh, name)), path.join(folder, name)];
    if (existsSync(to) && readFileSync(to).equals(from)) continue;
    mkdirSync(path.dirname(to), { recursive: true });
    const temporary = `${to}.${process.pid}`;
    writeFileSync(temporary, from);
    renameSync(temporary, to);
  }
  const wanted = new Set(files);
  for (const name of filesIn(folder)) {
    const isAnothers = /\.\d+$/.test(name); // the name is another build's temporary file
    if (!wanted.has(name) && !kept.has(name) && !isAnothers) rmSync(path.join(folder, name), { force: true });
  }
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}

async function writeSite(folder: string): Promise<BuiltSite> {
  const openApi = await openApiText();
  const pages = [...readPages(), ...apiPages(openApi)];
  const out = path.join(folder, "docs");
  for (const kept of ["pictures", "operate", "quickstart", "holds"]) {
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
      [TOKENS, path.join(import.meta.dirname, "style.css")]
        .map((file) => readFileSync(file, "utf8"))
        .join("\n"),
    ),
    script: hashed("page", "js", await pageScript()),
    index: hashed("search", "json", JSON.stringify(pages.flatMap(entriesOf))),
  };
  for (const page of ALONE) write(`docs/${page.name}.html`, htmlOf(page, pages, assets));
  for (const page of pages) {
    write(`${fileOf(page.name)}.html`, htmlOf(page, pages, assets));
    write(`${fileOf(page.name)}.md`, page.markdown);
  }
  writeTokenTable(folder);
  write("openapi.json", openApi);
  write("llms.txt", llmsText(pages));
  write("_headers", HEADERS + CONSOLE_HEADERS);
  write("_redirects", redirectsOf(pages));
  writeApiTypes(openApi);
  return { pages: pages.length, consoleBytes: (await buildConsole(folder)).all };
}

/** Returns the script of every page, which includes the search. */
async function pageScript(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(import.meta.dirname, "page.js")],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    write: false,
  });
  return outputFiles[0]?.text ?? "";
}

/** Returns every page of the docs and the changelog. Adapts pages for customers. */
export function readPages(): Page[] {
  const names = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).toSorted();
  const changelog = readFileSync(path.join(ROOT, "CHANGELOG.md"), "utf8");
  const pages = names
    .filter((name) => name.endsWith(".md"))
    .map((file) => {
      const name = file.slice(0, -3);
      const markdown = readFileSync(path.join(DOCS, file), "utf8");
      return { name, markdown: audienceOf(name) === "use" ? forCustomers(markdown) : markdown };
    });
  return [...pages, { name: CHANGELOG, markdown: changelog.replaceAll("](docs/", "](") }];
}

/** Pages that the Worker serves itself. The navigation and the search don't contain them. */
const ALONE: readonly Page[] = [
  {
    name: "welcome",
    markdown: `# Turnpike

Turnpike is a model gateway with prepaid credits. You reach all models at one address with one key, through the OpenAI and Anthropic APIs.

- [Console](/console/): balance, spend, keys and client setup
- [Quickstart](/docs/use/quickstart): your first request
- [API reference](/docs/use/api): every call with its fields, also as [openapi.json](/openapi.json)
- [For operators](/docs/run/start) and [for contributors](/docs/develop/)

For this region's status, request \`/healthz\`.`,
  },
  {
    name: "not-found",
    markdown: `# Page not found

Search above, or open the [Console](/console/), the [Quickstart](/docs/use/quickstart) or the [API reference](/docs/use/api). The API's paths start with \`/v1\`.`,
  },
];

function titleOf({ markdown }: Page): string {
  return (/^# (.+)$/m.exec(markdown)?.[1] ?? "").replaceAll("`", "");
}

/** Returns a link's target on the site, or null for files that are only in the repository. */
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
  const isAlone = ALONE.includes(page);
  const twin = `/${fileOf(page.name)}.md`;
  const audience = isAlone ? null : audienceOf(page.name);
  const here = onThisPage(headings);
  return `<!doctype html>
<html lang="en" data-audience="${audience ?? ""}"${isAlone ? ` data-alone="${page.name}"` : ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(titleOf(page))} - Turnpike</title>
<link rel="stylesheet" href="${assets["style"]}">
${isAlone ? "" : `<link rel="alternate" type="text/markdown" href="${twin}">\n`}<script src="${assets["script"]}" defer></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header><a class="brand" href="/docs/">Turnpike</a>
<button id="menu" type="button" aria-expanded="false" aria-controls="tree" hidden>Menu</button>
<a href="/console/">Console</a> <a href="/docs/" aria-current="true">Docs</a> <span id="region" class="badge"></span>
<form role="search"><input id="search" type="search" placeholder="Search, or press /" aria-label="Search the docs" autocomplete="off" data-index="${assets["index"]}"><ul id="found"></ul></form></header>
<div class="layout">
<main id="content">
${audience === "use" ? KEY_FIELD : ""}${here === "" ? "" : `<details class="here-folded"><summary>On this page</summary>${here}</details>`}${html}<footer>${isAlone ? "" : `<a href="${twin}">This page as Markdown</a> · `}<a href="/console/">Console</a></footer>
</main>
<nav class="tree" id="tree" aria-label="Pages">${audienceLinks(audience)}${treesHtml(page, pages)}<button id="scheme" type="button">light / dark</button></nav>
<nav class="here" aria-label="On this page">${here}</nav>
</div>
</body>
</html>
`;
}

/**
 * Fills a key into all blocks of customers' pages. Requires a script, so it is hidden without one.
 */
const KEY_FIELD = `<form id="keyed"><label>Your key <input id="key" type="password" autocomplete="off" placeholder="svc_sk_..."></label> <small>Fills in every example. It stays in this tab until you reload it. <a href="/console/#/connect">No key yet?</a></small></form>\n`;

function audienceLinks(current: Audience | null): string {
  const links = AUDIENCES.map(([name, title, first]) => {
    const is = name === current ? ' aria-current="true"' : "";
    return `<a href="${urlOf(first)}" data-audience="${name}"${is}>${title}</a>`;
  });
  return `<p class="audiences">${links.join(" ")}</p>`;
}

/**
 * Returns the page tree of the page's audience. The first page gets all three, of which a script
 * shows the chosen one.
 */
function treesHtml(page: Page, pages: readonly Page[]): string {
  const own = ALONE.includes(page) ? null : audienceOf(page.name);
  const shown = own === null ? AUDIENCES.map(([name]) => name) : [own];
  return shown
    .map((audience) => `<div data-tree="${audience}">${tree(page, pages, audience)}</div>`)
    .join("");
}

function tree(page: Page, pages: readonly Page[], audience: Audience): string {
  const item = (name: string): string => {
    const shown = pages.find((other) => other.name === name);
    if (shown === undefined) throw new Error(`no page docs/${name}.md`);
    const current = name === page.name ? ' aria-current="page"' : "";
    return `<li><a href="${urlOf(name)}"${current}>${escapeHtml(titleOf(shown))}</a></li>`;
  };
  return treeOf(audience, pages)
    .map(([title, names]) => {
      const head = title === "" ? "" : `<h2>${escapeHtml(title)}</h2>`;
      return `${head}<ul>${names.map(item).join("")}</ul>`;
    })
    .join("");
}

function onThisPage(headings: readonly Heading[]): string {
  const items = headings
    .filter(({ depth }) => depth === 2 || depth === 3)
    .map(({ title, anchor }) => `<li><a href="#${escapeHtml(anchor)}">${escapeHtml(title)}</a></li>`);
  return items.length < 2 ? "" : `<ul>${items.join("")}</ul>`;
}

/** Returns a page's search entries, one for each section, without code marks. */
export function entriesOf(page: Page): Entry[] {
  const title = titleOf(page);
  const prose = page.markdown.replaceAll(/^```[^]*?^```$/gm, "");
  const { headings } = renderMarkdown(prose, () => null);
  const parts = prose.split(/^#{1,6} .+$/m).slice(1);
  return headings.map(({ title: heading, anchor }, i) => {
    const part = parts[i] ?? "";
    const keywords = [...part.matchAll(KEYWORDS)].map(([, words = ""]) => words).join(" ");
    const text = part.replaceAll(KEYWORDS, "").replaceAll(/[`*|]|\]\([^)]*\)|\[|-{3,}/g, " ");
    return {
      url: `${urlOf(page.name)}#${anchor}`,
      title,
      heading,
      text: text.replaceAll(/\s+/g, " ").trim().slice(0, 600),
      keywords,
      audience: audienceOf(page.name) ?? "",
    };
  });
}

/** Search words of a section that its text lacks. */
const KEYWORDS = /<!-- keywords: (.*?) -->/g;

/** Returns the file for language models (llmstxt.org). */
function llmsText(pages: readonly Page[]): string {
  const lines = pages
    .filter(({ name }) => name !== "README" && !name.startsWith("internals/"))
    .map((page) => `- [${titleOf(page)}](/${fileOf(page.name)}.md)`);
  return `# Turnpike

> A model gateway that speaks OpenAI's API and takes prepaid credits, in two regions.

## Documents

${lines.join("\n")}

## API

- [OpenAPI 3.1](/openapi.json)
`;
}
