import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Metafile } from "esbuild";
import { openApiText } from "../openapi.ts";
import { apiTypes } from "./api-types.ts";
import { clientsIn } from "./clients.ts";

const SOURCE = path.join(import.meta.dirname, "../../src/console/browser");
const CLIENTS = path.join(import.meta.dirname, "../../docs/clients.md");
const KIB = 1024;
/** Maximum gzipped size of the console's scripts (docs/internals/decisions/speed.md). */
export const SCRIPT_BYTES_MAX = {
  /** The frame and the first page with its chart. */
  first: 34 * KIB,
  /** A page's own scripts. */
  page: 17.25 * KIB,
  /** Pages that only operators load. */
  operators: 24 * KIB,
  all: 135 * KIB,
};
/** Gzipped bytes of scripts. `pages` has the bytes that each page adds to the frame. */
type ScriptSizes = {
  readonly first: number;
  readonly all: number;
  readonly operators: number;
  readonly pages: Readonly<Record<string, number>>;
};

/** Allows only the console's own files and API, and no inline script or style. */
export const CONSOLE_HEADERS = `/console/*
  Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
  Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Resource-Policy: same-origin
/console/assets/*
  Cache-Control: public, max-age=31536000, immutable
`;

/**
 * Writes the types of the API's calls for the console. Skips unchanged types, because `wrangler
 * dev` rebuilds when a file changes.
 */
export function writeApiTypes(openApi: string): void {
  const file = path.join(SOURCE, "api/types.ts");
  const types = apiTypes(openApi);
  if (!existsSync(file) || readFileSync(file, "utf8") !== types) writeFileSync(file, types);
}

/** Builds the console into `<folder>/console`. Returns the sizes of its scripts. */
export async function buildConsole(folder: string): Promise<ScriptSizes> {
  const assets = path.join(folder, "console/assets");
  mkdirSync(assets, { recursive: true });
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(SOURCE, "main.tsx"), path.join(SOURCE, "style.css")],
    outdir: assets,
    entryNames: "[name].[hash]",
    chunkNames: "[name].[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    write: false,
    metafile: true,
  });
  for (const { path: at, contents } of outputFiles) writeFileSync(at, contents);
  const icon = readFileSync(path.join(SOURCE, "icon.svg"), "utf8");
  const hash = createHash("sha256").update(icon).digest("hex").slice(0, 8);
  writeFileSync(path.join(assets, `icon.${hash}.svg`), icon);
  const urlOf = (start: string): string => {
    const found = outputFiles.find(({ path: at }) => path.basename(at).startsWith(start));
    return `/console/assets/${path.basename(found?.path ?? start)}`;
  };
  const page = readFileSync(path.join(SOURCE, "index.html"), "utf8")
    .replace("main.tsx", urlOf("main."))
    .replace("style.css", urlOf("style."))
    .replace("icon.svg", `/console/assets/icon.${hash}.svg`);
  writeFileSync(path.join(folder, "console/index.html"), page);
  const clients = clientsIn(readFileSync(CLIENTS, "utf8"));
  writeFileSync(path.join(folder, "console/clients.json"), JSON.stringify(clients));
  const weights = new Map(
    outputFiles.map(({ path: at, contents }) => [
      path.basename(at),
      gzipSync(contents, { level: 9 }).length,
    ]),
  );
  return sizesOf(metafile, weights);
}

/** Returns a script with all its static imports. */
function staticImportsOf(outputs: Metafile["outputs"], at: string, known = new Set<string>()) {
  if (known.has(at)) return known;
  known.add(at);
  for (const { kind, path: next } of outputs[at]?.imports ?? []) {
    if (kind === "import-statement") staticImportsOf(outputs, next, known);
  }
  return known;
}

/** Pages for operators. These pages load their parts themselves. */
const OPERATORS_PAGES = ["organizations", "business", "catalog", "health"];

/** Returns all scripts that a script can load, except those behind `without`. */
function allImportsOf(outputs: Metafile["outputs"], at: string, without: ReadonlySet<string>) {
  const reached = new Set([at]);
  for (const one of reached) {
    for (const { path: next } of outputs[one]?.imports ?? []) {
      if (!without.has(next)) reached.add(next);
    }
  }
  return reached;
}

function sizesOf({ outputs }: Metafile, weights: ReadonlyMap<string, number>): ScriptSizes {
  const scripts = Object.keys(outputs).filter((at) => at.endsWith(".js"));
  const weigh = (some: Iterable<string>): number =>
    [...some].reduce((sum, at) => sum + (weights.get(path.basename(at)) ?? 0), 0);
  const entry = (name: string): string =>
    scripts.find((at) => outputs[at]?.entryPoint?.endsWith(name) === true) ?? name;
  const frame = staticImportsOf(outputs, entry("browser/main.tsx"));
  const own = (name: string): string[] =>
    [...staticImportsOf(outputs, entry(name))].filter((at) => !frame.has(at));
  const pages = scripts.flatMap((at) => {
    const page = /browser\/pages\/(\S+)\.tsx$/.exec(outputs[at]?.entryPoint ?? "")?.[1];
    return page === undefined ? [] : [[page, weigh(own(`browser/pages/${page}.tsx`))] as const];
  });
  const first = new Set([...frame, ...own("browser/pages/overview.tsx")]);
  const theirs = new Set(OPERATORS_PAGES.map((page) => entry(`browser/pages/${page}.tsx`)));
  const customers = allImportsOf(outputs, entry("browser/main.tsx"), theirs);
  return {
    first: weigh(first),
    all: weigh(scripts),
    operators: weigh(scripts.filter((at) => !customers.has(at))),
    pages: Object.fromEntries(pages),
  };
}

if (import.meta.main) writeApiTypes(await openApiText());
