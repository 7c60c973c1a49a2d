import { expect, it } from "vitest";
import { changedOf } from "../../src/console/browser/lib/changed.ts";

const KEY = { name: "Server", rpm_limit: 60, tpm_limit: 5000, allowed_models: ["sandbox/echo"] };

it("sends nothing that was not changed", () => {
  expect(changedOf(KEY, { ...KEY, allowed_models: ["sandbox/echo"] })).toEqual({});
});

it("a limit that was taken away is sent as none, and nothing beside it", () => {
  expect(changedOf<object>(KEY, { ...KEY, tpm_limit: null })).toEqual({ tpm_limit: null });
});
