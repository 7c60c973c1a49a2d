import { expect, it } from "vitest";
import { hintedWaitMs } from "../../src/models/core/upstream-failure.ts";

const wait = (headers: Record<string, string>, message = "") =>
  hintedWaitMs(new Headers(headers), message);

it.each([
  ["Please retry after 6 seconds.", 6000],
  ["Please retry after 1 second.", 1000],
  ["Rate limit reached. Please try again in 20ms. Visit https://x", 20],
  ["Please try again in 7.66s. Need more tokens?", 7660],
  ["Please try again in 1m30.5s.", 60_000],
  ["try again in 2 weeks", null],
  ["retry after lunch", null],
  ["", null],
])("the retry hint %j is parsed as a wait of %j ms", (message, ms) => {
  expect(wait({}, message)).toBe(ms);
});

it("rate limit headers mean a wait for the exhausted limits, or else the earliest reset, up to a minute", () => {
  const reset = { "x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s" };
  expect(wait(reset)).toBe(1000);
  expect(wait({ ...reset, "x-ratelimit-remaining-tokens": "0" })).toBe(60_000);
  const both = { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-remaining-requests": "0" };
  expect(wait({ ...reset, ...both, "x-ratelimit-reset-tokens": "8.5s" })).toBe(8500);
  expect(wait({ "x-ratelimit-reset-tokens-minute": "11.38" })).toBe(11_380);
  expect(wait({ "x-ratelimit-reset": "120ms" })).toBe(120);
});

it("a date, an invalid value or an unrelated header is parsed as no wait", () => {
  const odd = ["1741305600000", "2026-11-21T10:00:00Z", "soon", "-1", "1x", ""];
  expect(odd.map((value) => wait({ "x-ratelimit-reset-requests": value }))).toEqual(
    odd.map(() => null),
  );
  expect(
    wait({ "x-ratelimit-limit-requests": "5s", "x-ratelimit-remaining-requests": "0" }),
  ).toBeNull();
});

it("a wait in an error message takes priority over rate limit headers", () => {
  expect(wait({ "x-ratelimit-reset-requests": "30s" }, "Please retry after 2 seconds")).toBe(2000);
});
