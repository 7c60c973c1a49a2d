import * as fc from "fast-check";
import { expect, it } from "vitest";
import { getClaudeRules, toClaudeReasoningFields } from "../../src/models/claude/claude-rules.ts";

function fields(model: string, effort?: string, mayThink = true, cap = 10_000) {
  return toClaudeReasoningFields(getClaudeRules(model), effort, cap, mayThink);
}
const ADAPTIVE = { type: "adaptive", display: "summarized" };

const SPELLINGS = [
  [
    "claude-haiku-4-5",
    "claude-haiku-4-5-20251001",
    "eu.anthropic.claude-haiku-4-5-20251001-v1:0",
    "anthropic/claude-haiku-4.5",
    "claude-haiku-4-5@20251001",
  ],
  ["claude-opus-4-6", "us.anthropic.claude-opus-4-6-v1"],
  ["claude-sonnet-4", "claude-sonnet-4-20250514", "anthropic.claude-sonnet-4-20250514-v1:0"],
  ["claude-sonnet-5-5", "eu.anthropic.claude-sonnet-5-5", "claude-sonnet-6"],
  ["claude-opus-5-5", "claude-opus-7", "claude-fable-5-1", "claude-saga-9", "claude-next"],
];

it("getClaudeRules recognizes a model by its version in every provider's spelling", () => {
  for (const [first = "", ...others] of SPELLINGS) {
    for (const name of others) expect(getClaudeRules(name), name).toEqual(getClaudeRules(first));
  }
});

it.each([
  ["claude-3-5-haiku-20241022", "none", "tool", true, false],
  ["claude-3-7-sonnet-20250219", "budget", "tool", true, false],
  ["claude-sonnet-4-20250514", "budget", "tool", true, false],
  ["claude-haiku-4-5", "budget", "native", true, false],
  ["claude-sonnet-4-6", "adaptive", "native", true, true],
  ["claude-opus-4-8", "adaptive", "native", false, true],
  ["claude-sonnet-5", "adaptive", "native", false, true],
  ["claude-opus-5", "adaptive", "native", false, true],
  ["claude-haiku-5-5", "adaptive", "native", false, true],
  ["claude-sonnet-5-5", "adaptive", "native", false, true],
  ["claude-opus-5-5", "always", "native", false, true],
  ["claude-fable-5", "always", "native", false, true],
])(
  "getClaudeRules returns for %s: thinking %s, schema %s, sampling %s, geo %s",
  (model, ...expected) => {
    const {
      thinking,
      jsonSchema,
      acceptsSampling: sampling,
      acceptsInferenceGeo: geo,
    } = getClaudeRules(model);
    expect([thinking, jsonSchema, sampling, geo]).toEqual(expected);
  },
);

it("getClaudeRules reports which models accept a forced tool", () => {
  const unforceable = [
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-fable-5-1",
    "claude-mythos-5-1",
  ];
  const forceable = ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-haiku-5-5"];
  for (const model of unforceable) expect(getClaudeRules(model).canForceTools, model).toBe(false);
  for (const model of forceable) expect(getClaudeRules(model).canForceTools, model).toBe(true);
});

it.each([
  ["claude-3-5-haiku", "high", { thinks: false }],
  ["claude-haiku-4-5", undefined, { thinks: false }],
  ["claude-haiku-4-5", "none", { thinks: false }],
  ["claude-haiku-4-5", "minimal", budget(1024)],
  ["claude-haiku-4-5", "medium", budget(3000)],
  ["claude-haiku-4-5", "max", budget(9000)],
  ["claude-opus-4-6", undefined, { thinks: false }],
  ["claude-opus-4-6", "none", { thinks: false }],
  ["claude-opus-4-6", "minimal", adaptive("low")],
  ["claude-opus-4-6", "xhigh", adaptive("max")],
  ["claude-opus-4-8", "xhigh", adaptive("xhigh")],
  ["claude-sonnet-5", undefined, { thinking: ADAPTIVE, thinks: true }],
  ["claude-sonnet-5", "none", { thinking: { type: "disabled" }, thinks: false }],
  ["claude-sonnet-5-5", "none", { thinking: { type: "between_tools" }, thinks: false }],
  ["claude-opus-5-5", "none", adaptive("low")],
  ["claude-opus-5-5", "max", adaptive("max")],
])(
  "the Claude rules map an effort to thinking fields: %s at effort %s",
  (model, effort, expected) => {
    expect(fields(model, effort)).toEqual(expected);
  },
);

it("the Claude rules disable thinking where thinking would cause a 400, and lower the effort accordingly", () => {
  expect(fields("claude-haiku-4-5", "high", false)).toEqual({ thinks: false });
  expect(fields("claude-opus-4-8", undefined, false)).toEqual({ thinks: false });
  expect(fields("claude-sonnet-5", "max", false)).toEqual({
    thinking: { type: "disabled" },
    output_config: { effort: "high" },
    thinks: false,
  });
  expect(fields("claude-fable-5", "max", false)).toEqual(adaptive("max"));
});

it("the Claude rules set a thinking budget of at least 1024 tokens that leaves room for output", () => {
  const efforts = fc.constantFrom("minimal", "low", "medium", "high", "xhigh", "max");
  fc.assert(
    fc.property(efforts, fc.integer({ min: 1, max: 128_000 }), (effort, cap) => {
      const { thinking, thinks } = fields("claude-sonnet-4-5", effort, true, cap);
      expect(thinks).toBe(cap > 1024);
      if (thinking === undefined) return;
      expect(thinking["budget_tokens"]).toBeGreaterThanOrEqual(1024);
      expect(thinking["budget_tokens"]).toBeLessThan(cap);
    }),
  );
});

function budget(tokens: number) {
  return { thinking: { type: "enabled", budget_tokens: tokens }, thinks: true };
}
function adaptive(effort: string) {
  return { thinking: ADAPTIVE, output_config: { effort }, thinks: true };
}
