import { readSource, resolveImport } from "./tidy-source.ts";
import type { Source } from "./tidy-source.ts";

/**
 * The style of src as rules over its files: the text by path from the root. Rules return faults as
 * texts.
 */
export type Files = Readonly<Record<string, string>>;

const SHARED = ["shared", "shared/config", "shared/contracts", "shared/http"];
const EVENTS = ["events/metrics", "events/notifications", "events/webhooks"];
const MONEY = ["money/wallet", "money/payments"];
const ACCOUNTS = [
  "accounts/identity-providers",
  "accounts/keys",
  "accounts/merchants",
  "accounts/organizations",
  "accounts/pauses",
  "accounts/people",
];
const MODELS = [
  "models/catalog",
  "models/core",
  "models/endpoints",
  "models/protocols",
  "models/providers",
  "models/requests",
  "models/routing",
  "models/stored-responses",
];
const ROOMS = [...SHARED, "regions", ...EVENTS, ...MONEY, ...ACCOUNTS, ...MODELS, "operator"];
/** The layers: for each folder or file of src, the other folders and files that it may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  "shared/config": ["shared"],
  "shared/contracts": ["shared"],
  "shared/http": ["shared", "shared/config"],
  regions: SHARED,
  ...Object.fromEntries([...EVENTS, ...MONEY].map((room) => [room, SHARED])),
  "events/webhooks": [...SHARED, "events/notifications"],
  "accounts/identity-providers": SHARED,
  "accounts/keys": [...SHARED, "regions"],
  "accounts/merchants": [...SHARED, "regions", ...MONEY, "accounts/organizations"],
  "accounts/organizations": SHARED,
  "accounts/pauses": [...SHARED, "accounts/keys", "accounts/organizations"],
  "accounts/people": [...SHARED, "regions", ...EVENTS, ...MONEY, ...ACCOUNTS],
  "models/catalog": SHARED,
  "models/core": [...SHARED, "models/catalog"],
  "models/claude": ["shared", "models/core"],
  "models/protocols": [
    "shared",
    "shared/contracts",
    "shared/http",
    "models/core",
    "models/claude",
    "models/stored-responses",
  ],
  "models/providers": [
    "shared",
    "shared/config",
    "shared/http",
    "models/core",
    "models/claude",
    "models/protocols",
  ],
  "models/endpoints": [
    "shared",
    "shared/contracts",
    "shared/http",
    "models/catalog",
    "models/stored-responses",
    "models/core",
    "models/protocols",
  ],
  "models/routing": ["shared", "models/core"],
  "models/stored-responses": SHARED,
  "models/requests": [...SHARED, "regions", ...EVENTS, ...MONEY, ...ACCOUNTS, ...MODELS],
  operator: [
    ...SHARED,
    "regions",
    ...EVENTS,
    ...MONEY,
    ...ACCOUNTS,
    "models/catalog",
    "models/routing",
  ],
  console: [...SHARED, ...ACCOUNTS, "operator"],
  "routes.ts": ROOMS,
  "app.ts": [...ROOMS, "console", "routes.ts"],
  "index.ts": [...ROOMS, "console", "routes.ts", "app.ts"],
};

/** APIs that only files of certain roles may use. `http` and `app.ts` are the HTTP layer itself. */
const TOUCHES = [
  {
    what: "hono",
    found: (source: Source) => imports(source, /^hono(\/|$)/),
    allowed: /(\.route|\.peer)\.ts$|^src\/shared\/http\/|^src\/app\.ts$/,
  },
  {
    what: "cloudflare:workers",
    found: (source: Source) => imports(source, /^cloudflare:/),
    allowed: /\.do\.ts$/,
  },
  {
    what: "D1", // naming a D1Database and passing it on is no use
    found: (source: Source) => /\bD1(PreparedStatement|Result)\b|\.prepare\(/.test(source.code),
    allowed: /\.store\.ts$/,
  },
  {
    what: "an object's storage",
    found: (source: Source) =>
      /\b(SqlStorage|DurableObjectStorage|DurableObjectState)\b|\.transactionSync\(/.test(
        source.code,
      ),
    allowed: /\.do\.ts$/,
  },
] as const;

const LINES_MAX = 400;
const FUNCTION_LINES_MAX = 60;
const INDEX = "src/index.ts";
// in brackets, so that the rule doesn't find itself
const UNFINISHED = /\b(?:TO[D]O|FIX[M]E)\b|\.(?:skip|only)\(/;

/** Code that is not allowed in src, each with the reason. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [/(?<![.\w$])any\b(?!\s*[:(])/, "any: say what it is, or unknown"],
  [/[\w$)\]]!(?!=)/, "a non-null !: handle the absence or assert it"],
  [/(?<![.\w$])(?:process|Buffer)\b(?!\s*:)|\bglobalThis\.(?:process|Buffer)\b/, "a Node global"],
  [/^(?:export )?(?:let|var)\b/m, "mutable module state"],
];

/** Returns faults of src: layers, roles, cycles, banned code and sizes. */
export function tidySources(files: Files): string[] {
  const sources = readSources(files);
  const graph = importsOf(sources);
  return [
    ...sources.flatMap(faultsOfFile),
    ...cycles(graph),
    ...cycles(betweenRooms(graph)),
  ].toSorted();
}

/**
 * Returns files of src that the Worker's entry doesn't import, directly or not. Type-only imports
 * count.
 */
export function deadSources(files: Files): string[] {
  return unreached(readSources(files)).toSorted();
}

/** Returns marks of unfinished or disabled work in any file. */
export function unfinished(files: Files): string[] {
  return Object.entries(files).flatMap(([path, text]) => {
    const [mark] = UNFINISHED.exec(text) ?? [];
    return mark === undefined ? [] : [`${path}: ${mark}`];
  });
}

function readSources(files: Files): Source[] {
  return Object.entries(files)
    .filter(([path]) => !path.endsWith(".d.ts") && !path.startsWith("src/console/browser/"))
    .map(([path, text]) => readSource(path, text));
}

function faultsOfFile(source: Source): string[] {
  const faults = [
    ...wrongImports(source),
    ...TOUCHES.filter((role) => role.found(source) && !role.allowed.test(source.path)).map(
      (role) => `touches ${role.what}, which its role may not`,
    ),
    ...BANNED.filter(([pattern]) => pattern.test(source.code)).map(([, reason]) => reason),
    ...longFunctions(source.code),
  ];
  const [, suffix] = /\.([^./]+)\.ts$/.exec(source.path) ?? [];
  if (suffix !== undefined && !["store", "do", "route", "peer"].includes(suffix)) {
    faults.push(`the suffix .${suffix} is no role`);
  }
  if (/\bDate\.now\(|\bnew Date\(\)/.test(source.code) && source.path !== "src/shared/clock.ts") {
    faults.push("reads the clock; only shared/clock.ts does");
  }
  if (/^export default\b/m.test(source.code) && source.path !== INDEX) {
    faults.push("a default export");
  }
  const lines = source.text.trimEnd().split("\n").length;
  if (lines > LINES_MAX) faults.push(`${lines} lines, at most ${LINES_MAX}`);
  return faults.map((fault) => `${source.path}: ${fault}`);
}

function wrongImports(source: Source): string[] {
  const rung = rungOf(source.path);
  const may = MAY_IMPORT[rung];
  if (may === undefined) return [`${rung} has no place in the layers`];
  return source.imports.flatMap(({ from, what }) => {
    if (from.startsWith("node:")) return [`imports ${from}`];
    if (/^zod(\/|$)/.test(from) && (from !== "zod/mini" || !/^(?:type )?\* as z$/.test(what))) {
      return ['write import * as z from "zod/mini": "zod" adds 65 KiB, a named import 364'];
    }
    const target = resolveImport(source.path, from);
    if (target === null) return [];
    const below = rungOf(target);
    if (rung === "models/protocols" && below === rung && roomOf(target) !== roomOf(source.path)) {
      return [`${roomOf(source.path)} may not import ${roomOf(target)}`];
    }
    return below === rung || may.includes(below) ? [] : [`${rung} may not import ${below}`];
  });
}

/** Returns the layer of a file: its folder (`models/core`), or the file itself next to the folders. */
function rungOf(path: string): string {
  const [, room = path, folder = ""] = path.split("/");
  const inner = `${room}/${folder}`;
  return Object.hasOwn(MAY_IMPORT, inner) ? inner : room;
}

/** Returns the third folder level of a file (`models/protocols/chat`), or the file itself. */
function roomOf(path: string): string {
  return path.split("/").slice(1, 4).join("/");
}

function imports(source: Source, pattern: RegExp): boolean {
  return source.imports.some(({ from }) => pattern.test(from));
}

/** The files of src that each file imports, including type-only imports. */
type Imports = ReadonlyMap<string, readonly string[]>;

function importsOf(sources: readonly Source[]): Imports {
  const paths = new Set(sources.map(({ path }) => path));
  return new Map(
    sources.map((source) => {
      const targets = source.imports.map(({ from }) => resolveImport(source.path, from) ?? "");
      return [source.path, targets.filter((target) => paths.has(target))];
    }),
  );
}

/** Returns the imports between subfolders. */
function betweenRooms(files: Imports): Imports {
  const rooms = new Map<string, string[]>();
  for (const [path, targets] of files) {
    const room = roomOf(path);
    const others = targets.map(roomOf).filter((other) => other !== room);
    rooms.set(room, [...(rooms.get(room) ?? []), ...others]);
  }
  return rooms;
}

function unreached(sources: readonly Source[]): string[] {
  const files = importsOf(sources);
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const target of files.get(path) ?? []) visit(target);
  };
  if (files.has(INDEX)) visit(INDEX);
  return [...files.keys()].filter((path) => !reached.has(path));
}

/** Returns each cycle once, named from its first visited file. */
function cycles(graph: Imports): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const since = trail.indexOf(path);
    if (since !== -1) {
      found.push([...trail.slice(since), path].join(" -> "));
      return;
    }
    if (done.has(path)) return;
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found.map((cycle) => `a cycle: ${cycle}`);
}

/**
 * Returns long functions by their braces: a `{` after `=>`, or after the `)` of anything except a
 * statement.
 */
function longFunctions(code: string): string[] {
  const opened: { readonly isFunction: boolean; readonly line: number }[] = [];
  const faults: string[] = [];
  let line = 1;
  for (let at = 0; at < code.length; at++) {
    const character = code.charAt(at);
    if (character === "\n") line++;
    if (character === "{") {
      opened.push({ isFunction: opensFunction(code.slice(Math.max(0, at - 600), at)), line });
    }
    if (character !== "}") continue;
    const block = opened.pop();
    const length = line - (block?.line ?? line) + 1;
    if (block?.isFunction === true && length > FUNCTION_LINES_MAX) {
      faults.push(`a function of ${length} lines at line ${block.line}`);
    }
  }
  return faults;
}

function opensFunction(before: string): boolean {
  if (/=>\s*$/.test(before)) return true;
  // Matches the end of a parameter list, with or without a return type.
  const end = /\)(?:\s*:[^;{}()=]*)?\s*$/.exec(before);
  if (end === null) return false;
  let depth = 0;
  for (let at = end.index; at >= 0; at--) {
    if (before.charAt(at) === ")") depth++;
    if (before.charAt(at) === "(" && --depth === 0) {
      return !/\b(?:if|for|while|switch|catch|await)\s*$/.test(before.slice(0, at));
    }
  }
  return false;
}
