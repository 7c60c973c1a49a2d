import { expect, it } from "vitest";
import {
  requiresCallSignatures,
  toGeminiThinkingConfig,
} from "../../src/models/protocols/gemini/request.ts";

const level = (model: string, effort: string) =>
  toGeminiThinkingConfig(model, effort, 4096)?.["thinkingLevel"];
const budget = (model: string, effort: string, cap: number | null = 100_000) =>
  toGeminiThinkingConfig(model, effort, cap)?.["thinkingBudget"];
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

it.each([
  ["gemini-3-flash-preview", "MINIMAL"],
  ["gemini-3.1-flash-lite", "MINIMAL"],
  ["gemini-3.5-flash", "MINIMAL"],
  ["gemini-3.7-flash", "LOW"],
  ["gemini-3.10-flash", "LOW"],
  ["gemini-3.1-pro-preview", "LOW"],
  ["gemini-4-flash", "LOW"],
  ["gemini-flash-latest", "LOW"],
])(
  "the thinking level of %s is at least %s, and each effort maps to a level of the model",
  (model, minLevel) => {
    const levels = EFFORTS.map((effort) => level(model, effort));
    expect(levels).toEqual([minLevel, minLevel, "LOW", "MEDIUM", "HIGH", "HIGH", "HIGH"]);
  },
);

it("Gemini 3 Pro uses the thinking level high for the effort medium", () => {
  expect(level("gemini-3-pro-preview", "medium")).toBe("HIGH");
});

it.each([
  ["gemini-2.5-pro", [128, 1024, 1024, 8192, 24_576, 32_768, 32_768]],
  ["gemini-2.5-flash", [0, 1024, 1024, 8192, 24_576, 24_576, 24_576]],
  ["gemini-2.5-flash-lite", [0, 1024, 1024, 8192, 24_576, 24_576, 24_576]],
])("the thinking budgets of %s stay within its limits", (model, budgets) => {
  expect(EFFORTS.map((effort) => budget(model, effort))).toEqual(budgets);
});

it("a thinking budget leaves a quarter of the cap for output, unless the model's minimum budget is higher", () => {
  expect(budget("gemini-2.5-flash", "high", 4096)).toBe(3072);
  expect(budget("gemini-2.5-flash-lite", "high", 100)).toBe(512);
  expect(budget("gemini-2.5-pro", "low", 10)).toBe(128);
  expect(budget("gemini-2.5-pro", "low", null)).toBe(1024);
});

it("Gemini requests contain a thinking config, and ask for thoughts, only if an effort is set", () => {
  expect(toGeminiThinkingConfig("gemini-3.5-flash", "low", 9)).toHaveProperty(
    "includeThoughts",
    true,
  );
  expect(toGeminiThinkingConfig("gemini-2.5-flash", "low", 9)).toHaveProperty(
    "includeThoughts",
    true,
  );
  for (const model of ["gemini-3.5-flash", "gemini-2.5-flash"]) {
    expect(JSON.stringify(toGeminiThinkingConfig(model, "none", 9))).not.toContain(
      "includeThoughts",
    );
    expect(toGeminiThinkingConfig(model, undefined, 9)).toBeUndefined();
  }
  for (const model of ["gemini-2.0-flash", "gemma-4-26b-a4b-it", "my-own"]) {
    expect(toGeminiThinkingConfig(model, "high", 9)).toBeUndefined();
    expect(requiresCallSignatures(model)).toBe(false);
  }
});
