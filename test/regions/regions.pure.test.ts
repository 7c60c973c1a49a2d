import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { REGION_ROWS } from "../../src/lib/regions.ts";

const ROOT = path.join(import.meta.dirname, "../..");
/** The table itself, where hosts of each region are sold, and the one place that Anthropic names. */
const MAY_NAME = /^(?:lib\/regions\.ts|catalog\/makers\/|providers\/anthropic\/)/;

it("no file of src but the table decides anything by a region's name", () => {
  const src = path.join(ROOT, "src");
  const files = readdirSync(src, { recursive: true, encoding: "utf8" });
  const naming = files
    .filter((file) => file.endsWith(".ts") && !MAY_NAME.test(file))
    .filter((file) => {
      const code = readFileSync(path.join(src, file), "utf8").replaceAll(
        /\/\*[\s\S]*?\*\/|\/\/.*/g,
        "",
      );
      return REGION_ROWS.some(({ id }) => new RegExp(`["'\`]${id}["'\`]`).test(code));
    });
  expect(naming).toEqual([]);
});

it("each row has its environment, and each environment its row", () => {
  const toml = readFileSync(path.join(ROOT, "wrangler.toml"), "utf8");
  const named = [...toml.matchAll(/^\[env\.([a-z]+)\]$/gm)].map(([, id]) => id);
  expect(named).toEqual(REGION_ROWS.map(({ id }) => id));
  for (const { id, jurisdiction } of REGION_ROWS) {
    expect(toml).toContain(`REGION = "${id}", JURISDICTION = "${jurisdiction ?? ""}"`);
  }
});
