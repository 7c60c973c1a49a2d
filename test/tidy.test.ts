import { expect, it } from "vitest";
import { countsOf } from "./tidy-counts.ts";
import { deadSources, tidySources, unfinished } from "./tidy-rules.ts";
import type { Files } from "./tidy-rules.ts";

const sources = fromRoot(
  import.meta.glob<string>(["../src/**/*.ts", "!../src/console/browser/**"], {
    query: "?raw",
    import: "default",
    eager: true,
  }),
);
const besides = fromRoot({
  ...import.meta.glob<string>("./**/*.ts", { query: "?raw", import: "default", eager: true }),
  ...import.meta.glob<string>("../scripts/**/*.ts", {
    query: "?raw",
    import: "default",
    eager: true,
  }),
  ...import.meta.glob<string>("../src/console/browser/**/*.{ts,tsx}", {
    query: "?raw",
    import: "default",
    eager: true,
  }),
});

it("src follows the rules of layers, file suffixes and style", () => {
  expect(Object.keys(sources)).toContain("src/index.ts");
  expect(tidySources(sources)).toEqual([]);
});

it("the entry imports every file of src, directly or through other files", () => {
  expect(deadSources(sources)).toEqual([]);
});

it("no file contains unfinished or disabled code", () => {
  expect(Object.keys(besides)).toContain("scripts/bundle.ts");
  expect(Object.keys(besides)).toContain("src/console/browser/app.tsx");
  expect(unfinished({ ...sources, ...besides })).toEqual([]);
});

/** The current numbers of src. Lower a number if you can, and never raise one. */
const MOST = { casts: 64, lookups: 104, alike: 22 };

it("src contains no more casts, untyped reads and ambiguous names than recorded", () => {
  const { casts, lookups, alike, ambiguous } = countsOf(sources);
  expect(casts).toBeLessThanOrEqual(MOST.casts);
  expect(lookups).toBeLessThanOrEqual(MOST.lookups);
  expect(alike.slice(MOST.alike)).toEqual([]);
  expect(ambiguous).toEqual([]);
});

it("the counter of casts, untyped reads and ambiguous names counts an example correctly", () => {
  const planted = {
    "src/models/protocols/chat/a.ts": `import * as z from "zod/mini";
export type Said = Part["type"] & { readonly [K in Name as Key<K>]: K };
type Part = { type: "a" } /* as many */;
export const a = (b: unknown) => [b as Said, (b as { c: unknown }).c, z, ["x"] as const, "as A"];
export const d = (e: Record<string, unknown>, as: string) => [e["x"], e["y"]?.["z"], ["x"], as];`,
    "src/shared/b.ts": `type Said = string;\nexport type Part = Said;\nexport const x = (o: A) => o["x"];`,
    "src/shared/c.ts": `export interface Part {}`,
  };
  expect(countsOf(planted)).toEqual({
    casts: 2,
    lookups: 3,
    alike: ["Part"],
    ambiguous: ["Said"],
  });
});

/** Files without a fault, to which a fault is added. */
const CLEAN: Files = {
  "src/index.ts": `import { app } from "./app.ts";\nexport { Wallet } from "./money/wallet/wallet.do.ts";\nexport default { fetch: app.fetch };`,
  "src/app.ts": `import { Hono } from "hono";\nimport { price } from "./models/catalog/price.ts";\nexport const app = new Hono(); price();`,
  "src/models/catalog/price.ts": `import * as z from "zod/mini";\nimport { now } from "../../shared/clock.ts";\n/** any process! */\nexport const price = () => [z, now, "any", \`a \${now({ a: 1 })} any! \${2}\`, /any!"/.test("")];\nexport const signal = AbortSignal.any([]);`,
  "src/shared/clock.ts": `export const now = () => Date.now();`,
  "src/money/wallet/wallet.do.ts": `import { DurableObject } from "cloudflare:workers";\nimport { rows } from "./snapshot.store.ts";\nexport class Wallet extends DurableObject { rows = rows(this.env.DB); a = 1 !== 2 && !this.b; }`,
  "src/money/wallet/snapshot.store.ts": `export const rows = (db: D1Database) => db.prepare("SELECT 1").all();`,
  "src/env.d.ts": `interface Env { any: any }`,
};
const ZOD =
  'src/models/catalog/price.ts: write import * as z from "zod/mini": "zod" adds 65 KiB, a named import 364';
const inPrice = (line: string): Files => ({
  "src/models/catalog/price.ts": `${CLEAN["src/models/catalog/price.ts"]}\n${line}`,
});
const longBody = "\n  price();".repeat(60);

/** Each added fault, with the expected report. */
const PLANTED: readonly (readonly [string, Files, string])[] = [
  [
    "an import of a sibling folder",
    inPrice(`import { rows } from "../../money/wallet/snapshot.store.ts";`),
    "src/models/catalog/price.ts: models/catalog may not import money/wallet",
  ],
  [
    "a type import from a higher layer",
    inPrice(`import type { app } from "../../app.ts";`),
    "src/models/catalog/price.ts: models/catalog may not import app.ts",
  ],
  [
    "a re-export across layers",
    inPrice(`export { rows } from "../../money/wallet/snapshot.store.ts";`),
    "src/models/catalog/price.ts: models/catalog may not import money/wallet",
  ],
  [
    "a folder without a layer",
    { "src/billing/a.ts": "" },
    "src/billing/a.ts: billing has no place in the layers",
  ],
  [
    "hono in a pure file",
    inPrice(`import { Hono } from "hono/tiny";`),
    "src/models/catalog/price.ts: touches hono, which its role may not",
  ],
  [
    "the runtime in a pure file",
    inPrice(`import { env } from "cloudflare:workers";`),
    "src/models/catalog/price.ts: touches cloudflare:workers, which its role may not",
  ],
  [
    "D1 outside a store",
    inPrice(`export const all = (db: D1Database) => db.prepare("SELECT 1");`),
    "src/models/catalog/price.ts: touches D1, which its role may not",
  ],
  [
    "object storage outside an object",
    inPrice(`export const all = (sql: SqlStorage) => sql;`),
    "src/models/catalog/price.ts: touches an object's storage, which its role may not",
  ],
  [
    "an unknown file suffix",
    { "src/accounts/keys/a.helper.ts": "" },
    "src/accounts/keys/a.helper.ts: the suffix .helper is no role",
  ],
  [
    "a cycle",
    {
      "src/models/catalog/a.ts": `import { b } from "./b.ts";\nexport const a = () => b;`,
      "src/models/catalog/b.ts": `import type { a } from "./a.ts";\nexport const b = 1;`,
    },
    "a cycle: src/models/catalog/a.ts -> src/models/catalog/b.ts -> src/models/catalog/a.ts",
  ],
  [
    "a cycle of subfolders without a cycle of files",
    {
      "src/money/wallet/rules/a.ts": `import { b } from "../tables/b.ts";\nexport const a = () => b;`,
      "src/money/wallet/tables/b.ts": `export const b = 1;`,
      "src/money/wallet/tables/c.ts": `import { d } from "../rules/d.ts";\nexport const c = () => d;`,
      "src/money/wallet/rules/d.ts": `export const d = 1;`,
    },
    "a cycle: money/wallet/rules -> money/wallet/tables -> money/wallet/rules",
  ],
  [
    "an import of another protocol",
    { "src/models/protocols/chat/a.ts": `export { b } from "../messages/b.ts";` },
    "src/models/protocols/chat/a.ts: models/protocols/chat may not import models/protocols/messages",
  ],
  [
    "the type any",
    inPrice("export const a = (b: any) => b;"),
    "src/models/catalog/price.ts: any: say what it is, or unknown",
  ],
  [
    "the type any in an array",
    inPrice("export type A = Array<any>;"),
    "src/models/catalog/price.ts: any: say what it is, or unknown",
  ],
  [
    "a non-null assertion",
    inPrice("export const a = price()[0]!;"),
    "src/models/catalog/price.ts: a non-null !: handle the absence or assert it",
  ],
  [
    "the global process",
    inPrice("export const a = process.env;"),
    "src/models/catalog/price.ts: a Node global",
  ],
  [
    "the global Buffer",
    inPrice("export const a = Buffer.from([]);"),
    "src/models/catalog/price.ts: a Node global",
  ],
  [
    "a Node module",
    inPrice(`import { createHash } from "node:crypto";`),
    "src/models/catalog/price.ts: imports node:crypto",
  ],
  ["an import of all of zod", inPrice(`import * as z from "zod";`), ZOD],
  ["zod's named import", inPrice(`import { z } from "zod/mini";`), ZOD],
  ["module state", inPrice("let count = 0;"), "src/models/catalog/price.ts: mutable module state"],
  [
    "a default export",
    inPrice("export default price;"),
    "src/models/catalog/price.ts: a default export",
  ],
  [
    "a read of the clock",
    inPrice("export const a = Date.now();"),
    "src/models/catalog/price.ts: reads the clock; only shared/clock.ts does",
  ],
  [
    "a read of the clock by a date",
    inPrice("export const a = new Date();"),
    "src/models/catalog/price.ts: reads the clock; only shared/clock.ts does",
  ],
  [
    "a long file",
    inPrice("\n".repeat(400) + "price();"),
    "src/models/catalog/price.ts: 406 lines, at most 400",
  ],
  [
    "a long function",
    inPrice(`export function a(b: string): Promise<void> {${longBody}\n}`),
    "src/models/catalog/price.ts: a function of 62 lines at line 6",
  ],
  [
    "a long arrow function",
    inPrice(`export const a = () => {${longBody}\n};`),
    "src/models/catalog/price.ts: a function of 62 lines at line 6",
  ],
];

it("the style check finds no fault in correct files, whatever comments and strings contain", () => {
  expect(tidySources(CLEAN)).toEqual([]);
  expect(deadSources(CLEAN)).toEqual([]);
});

it("the style check finds an unused file even if another unused file imports it", () => {
  const dead = { "src/shared/a.ts": "", "src/shared/b.ts": `import "./a.ts";` };
  expect(deadSources({ ...CLEAN, ...dead })).toEqual(Object.keys(dead));
});

it.each(PLANTED)("the style check finds %s", (_name, planted, fault) => {
  expect(tidySources({ ...CLEAN, ...planted })).toContain(fault);
});

it.each([
  ["TO", "DO"],
  ["FIX", "ME"],
  ["it.sk", "ip("],
  ["describe.on", "ly("],
])("the style check finds %s%s", (...mark) => {
  expect(unfinished({ "test/a.test.ts": `it(); // ${mark.join("")}` })).toHaveLength(1);
});

function fromRoot(globbed: Files): Files {
  return Object.fromEntries(
    Object.entries(globbed).map(([path, text]) => [
      path.startsWith("../") ? path.slice("../".length) : `test/${path.slice("./".length)}`,
      text,
    ]),
  );
}
