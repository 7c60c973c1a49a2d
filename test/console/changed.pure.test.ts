import { expect, it } from "vitest";
import { changedOf } from "../../src/console/browser/lib/changed.ts";

const KEY = { name: "Server", rpm_limit: 60, tpm_limit: 5000, allowed_models: ["sandbox/echo"] };

it("a form of the console sends no unchanged field", () => {
  expect(changedOf(KEY, { ...KEY, allowed_models: ["sandbox/echo"] })).toEqual({});
});

it("a form of the console sends a removed limit as null, and nothing else", () => {
  expect(changedOf<object>(KEY, { ...KEY, tpm_limit: null })).toEqual({ tpm_limit: null });
});
