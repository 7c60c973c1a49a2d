import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const CONSOLE = path.join(import.meta.dirname, "../../src/console/browser");
/**
 * Files that define how a read is displayed: its value, placeholder, age, and failure with a retry.
 */
const OWN = new Set(["state/reads.ts", "ui/states.tsx"]);

/** The console's source files by path. */
const SOURCES = readdirSync(CONSOLE, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && file !== "api/types.ts")
  .map((file) => [file, readFileSync(path.join(CONSOLE, file), "utf8")] as const);

/** Matches code that uses only the last value of a read. */
const BARE = /\.latest\b|\blatest\s*[,}:]/;

describe("a console component that reads from the API", () => {
  it.each(SOURCES.filter(([file]) => !OWN.has(file)))(
    "displays the value only through the components Shown or Inline: %s",
    (_file, text) => {
      expect(text.split("\n").filter((line) => BARE.test(line))).toEqual([]);
    },
  );

  it("draws secondary data in space that is reserved for it", () => {
    const drawn = SOURCES.flatMap(([file, text]) =>
      [...text.matchAll(/\{beside\([^)]*\)[^}]*&&/g)].map(([found]) => `${file}: ${found}`),
    );
    expect(drawn).toEqual([]);
  });

  it("fails this test if it displays the value directly", () => {
    expect(BARE.test("const rows = useRead(x).latest?.rows")).toBe(true);
    expect(BARE.test("const { latest, at } = useRead(x)")).toBe(true);
    expect(BARE.test("the latest of them")).toBe(false);
  });
});
