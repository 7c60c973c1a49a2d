import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { REGION_ROWS } from "../../src/shared/regions.ts";
import type { Region } from "../../src/shared/regions.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";

const ROOT = path.join(import.meta.dirname, "../..");
/**
 * The table itself, the places that sell hosts of each region, and the place that Anthropic names.
 */
const OF_SRC =
  /^(?:shared\/regions\.ts|console\/browser\/|models\/(?:catalog\/authors\/|providers\/anthropic\.ts|protocols\/messages\/))/;
/** Scripts for exactly two regions, whose measurements and recordings contain their names. */
const OF_SCRIPTS =
  /^(?:region-names\.ts|bench|workers\/pressing\.ts|soak|release|openapi-examples\.ts|openapi\/)/;

it.each([
  ["src", OF_SRC],
  ["scripts", OF_SCRIPTS],
])(
  "the code in %s doesn't depend on a region's name, except in listed files",
  (folder, mayName) => {
    const files = readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" });
    const naming = files
      .filter((file) => file.endsWith(".ts") && !mayName.test(file))
      .filter((file) => {
        const text = readFileSync(path.join(ROOT, folder, file), "utf8");
        const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
        return REGION_ROWS.some(({ id }) => new RegExp(`["'\`]${id}["'\`]`).test(code));
      });
    expect(naming).toEqual([]);
  },
);

it("a region that a provider's table doesn't list uses only the provider's global hosts", () => {
  const rows = REGION_ROWS as unknown[];
  const hosts = { strict: ["ap", "global"], relaxed: ["ap", "global"] };
  rows.push({ id: "ap", jurisdiction: null, hosts, aws: null, anthropicGeo: null });
  try {
    const config = { region: "ap" as Region, sandbox: false, providers: [], ai: undefined };
    const tags = BUILT_IN_PROVIDERS.flatMap((builtIn) => {
      const set = { ...config, secret: () => "on" };
      return builtIn.isSet(set) ? builtIn.tags(set) : [];
    });
    expect(tags.length).toBeGreaterThan(8);
    expect([...new Set(tags)]).toEqual(["global"]);
  } finally {
    rows.pop();
  }
});

it("wrangler.toml includes an environment for exactly the listed regions", () => {
  const toml = readFileSync(path.join(ROOT, "wrangler.toml"), "utf8");
  const named = [...toml.matchAll(/^\[env\.([a-z]+)\]$/gm)].map(([, id]) => id);
  expect(named).toEqual(REGION_ROWS.map(({ id }) => id));
  for (const { id, jurisdiction } of REGION_ROWS) {
    expect(toml).toContain(`REGION = "${id}", JURISDICTION = "${jurisdiction ?? ""}"`);
  }
});
