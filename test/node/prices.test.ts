import { describe, expect, it } from "vitest";
import { isStale, jsonOfPrices, pricedRoutes, tableOfPrices } from "../../scripts/prices-table.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { startProgram } from "./support/program.ts";

const JULY_2 = Date.UTC(2026, 6, 2);
const DAY_MS = 86_400_000;

type Printed = { readonly model: string; readonly provider: string; readonly stale: boolean };

async function run(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const program = startProgram(["scripts/prices.ts", ...args]);
  return { code: await program.ended, output: program.output() };
}

const FREE = { input: 0, cached: 0, cacheWrite: 0, output: 0 };
const SEEN = { from: "2026-07-02", price: FREE, seenOn: "2026-07-02" };

describe("a stale price in npm run prices", () => {
  it("gets its age from the day on which the current price was checked", () => {
    const later = { from: "2026-09-01", price: FREE, seenOn: "2026-08-30" };
    const prices = [SEEN, later] as const;
    expect(isStale({ prices }, Date.UTC(2026, 7, 31), 50)).toBe(true);
    expect(isStale({ prices }, Date.UTC(2026, 8, 1), 50)).toBe(false);
  });

  it("counts as stale only beyond the given number of days", () => {
    const price = { prices: [SEEN] } as const;
    expect(isStale(price, JULY_2 + 60 * DAY_MS, 60)).toBe(false);
    expect(isStale(price, JULY_2 + 60 * DAY_MS + 1, 60)).toBe(true);
    expect(isStale(price, JULY_2, 0)).toBe(false);
  });

  it("may have been checked recently if its announced last day has passed", () => {
    const price = { prices: [SEEN], until: "2026-07-03" } as const;
    expect(isStale(price, JULY_2 + 2 * DAY_MS - 1, 60)).toBe(false);
    expect(isStale(price, JULY_2 + 2 * DAY_MS, 60)).toBe(true);
  });
});

describe("the price list of npm run prices", () => {
  it("contains every route in dollars, with regional and long-prompt surcharges", () => {
    const lines = tableOfPrices(pricedRoutes(JULY_2, 60)).split("\n");
    const routes = CATALOG.flatMap((entry) => entry.routes);
    expect(lines).toHaveLength(2 + routes.length + 2);
    const line = (text: string) => lines.find((one) => one.includes(text))?.replaceAll(/\s+/g, " ");
    expect(line("eu.anthropic.claude-haiku-5-5")).toBe(
      "anthropic/claude-haiku-5.5 bedrock eu.anthropic.claude-haiku-5-5 0.1 0.01 0.125 0.5 2026-10-24 eu +10%, >100000 tokens x5/x5",
    );
    expect(line(" gemini-3.7-flash ")).toContain("from 2027-01-01 1.5/7.5");
    expect(line("openai gpt-5-nano")).toContain("until 2026-12-10");
    expect(lines.at(-1)).toContain(`0 of ${routes.length} stale`);
  });

  it("contains the same prices in JSON, in micro-credits", () => {
    const printed = JSON.parse(jsonOfPrices(pricedRoutes(JULY_2 + 3650 * DAY_MS, 60))) as Printed[];
    expect(printed.every(({ stale }) => stale)).toBe(true);
    expect(printed.find(({ model }) => model === "openai/gpt-6-luna")).toEqual({
      model: "openai/gpt-6-luna",
      provider: "openai",
      upstream_id: "gpt-6-luna",
      input: 100_000,
      cached: 10_000,
      cache_write: 125_000,
      output: 500_000,
      long_prompt: { above: 272_000, input_percent: 200, output_percent: 150 },
      regions: ["global", "us", "eu"],
      uplift_percent: 10,
      priced_on: "2026-10-26",
      next: [],
      until: null,
      stale: true,
    });
  });
});

describe("npm run prices", () => {
  it("exits with 0 even if prices are stale, for text and JSON", async () => {
    const words = await run("--older-than", "0");
    expect(words.code).toBe(0);
    expect(words.output).toContain("STALE");
    const json = await run("--json");
    expect(json.code).toBe(0);
    expect(JSON.parse(json.output)).toHaveLength(pricedRoutes(0, 0).length);
  });

  it("exits with 1 for a stale price if --strict is set", async () => {
    expect((await run("--older-than", "0", "--strict")).code).toBe(1);
  });

  it("exits with 0 for --help, which lists the exit codes, and with 2 for wrong usage", async () => {
    const help = await run("--help");
    expect(help.code).toBe(0);
    expect(help.output).toContain("Exits with 0, with 1 if --strict finds a stale price");
    expect((await run("--older-than", "a-day")).code).toBe(2);
    expect((await run("--older")).code).toBe(2);
  });
});
