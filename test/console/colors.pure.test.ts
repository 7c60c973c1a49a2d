import { expect, it } from "vitest";
import { colorsOf } from "../../src/console/browser/state/colors.ts";

const NAMES = ["openai/gpt-6-sol", "anthropic/claude-haiku-5.5", "sandbox/echo", "mistral/small"];

it("a name has the same color in every chart, and no two names of a chart have the same color", () => {
  for (const name of NAMES) {
    expect(colorsOf([name, "other"])(name)).toBe(colorsOf([name, ...NAMES])(name));
  }
  const many = Array.from({ length: 12 }, (_, i) => `model-${i}`);
  const of = colorsOf([...many, "other", null]);
  const slots = many.map((name) => of(name)).filter((slot) => slot !== null);
  expect(new Set(slots).size).toBe(6);
  expect(slots).toHaveLength(6);
  expect(of("other")).toBeNull();
});
