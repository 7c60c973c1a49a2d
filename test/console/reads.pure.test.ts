import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const CONSOLE = path.join(import.meta.dirname, "../../src/console/browser");
/** Where a read is told from what it is shown as: its value, its skeleton, its age, its failure with Try again. */
const OWN = new Set(["state/reads.ts", "ui/states.tsx", "ui/pages.ts"]);

/** Every source of the console, by its path. */
const SOURCES = readdirSync(CONSOLE, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && file !== "api/types.ts")
  .map((file) => [file, readFileSync(path.join(CONSOLE, file), "utf8")] as const);

/** Looks at what was read last without what stands beside it. */
const BARE = /\.latest\b|\blatest\s*[,}:]/;

describe("a component that reads from the API", () => {
  it.each(SOURCES.filter(([file]) => !OWN.has(file)))(
    "shows value, placeholder, age or failure through Shown or Inline in %s",
    (_file, text) => {
      expect(text.split("\n").filter((line) => BARE.test(line))).toEqual([]);
    },
  );

  it("takes no space if it is secondary", () => {
    const drawn = SOURCES.flatMap(([file, text]) =>
      [...text.matchAll(/\{beside\([^)]*\)[^}]*&&/g)].map(([found]) => `${file}: ${found}`),
    );
    expect(drawn).toEqual([]);
  });

  it("fails this test if it shows the value directly", () => {
    expect(BARE.test("const rows = useRead(x).latest?.rows")).toBe(true);
    expect(BARE.test("const { latest, at } = useRead(x)")).toBe(true);
    expect(BARE.test("the latest of them")).toBe(false);
  });
});
