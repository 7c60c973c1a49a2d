import { expect, it } from "vitest";
import { parseHintedWaitMs } from "../../src/models/core/upstream-failure.ts";
import { cleanMessage } from "../../src/models/core/cleaned-message.ts";

const wait = (headers: Record<string, string>, message = "") =>
  parseHintedWaitMs(new Headers(headers), message);

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

it("a wait from rate limit headers ends when the exhausted limits reset, or else at the earliest reset, within a minute", () => {
  const reset = { "x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s" };
  expect(wait(reset)).toBe(1000);
  expect(wait({ ...reset, "x-ratelimit-remaining-tokens": "0" })).toBe(60_000);
  const both = { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-remaining-requests": "0" };
  expect(wait({ ...reset, ...both, "x-ratelimit-reset-tokens": "8.5s" })).toBe(8500);
  expect(wait({ "x-ratelimit-reset-tokens-minute": "11.38" })).toBe(11_380);
  expect(wait({ "x-ratelimit-reset": "120ms" })).toBe(120);
});

it("a date, an invalid value or an unrelated header causes no wait", () => {
  const odd = ["1741305600000", "2026-11-21T10:00:00Z", "soon", "-1", "1x", ""];
  expect(odd.map((value) => wait({ "x-ratelimit-reset-requests": value }))).toEqual(
    odd.map(() => null),
  );
  expect(
    wait({ "x-ratelimit-limit-requests": "5s", "x-ratelimit-remaining-requests": "0" }),
  ).toBeNull();
});

it("a wait in an error message overrides rate limit headers", () => {
  expect(wait({ "x-ratelimit-reset-requests": "30s" }, "Please retry after 2 seconds")).toBe(2000);
});

it.each([
  "arn:aws:iam::123456789012:role/x",
  "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.x",
  "accounts/acme-corp/deployedModels/foo",
  "projects/acme/locations/eu",
  "/subscriptions/<id>/rg/foo",
  "/subscriptions/0f-1/resourceGroups/acme/providers/x",
  "project_number:123456789012",
  "project: acme",
  "123456789012",
  "fd00::1",
  "::1",
  "fd00::",
  "2001:db8::8a2e:370:7334",
  "[fd00::1]:8080",
  "vllm-0:8000",
  "vllm_eu:8000/v1",
  "ollama:11434",
  "node1:443",
  "x.modal.run/foo",
  "x.modal.run",
  "a.b.example/v1/chat",
  "pool.svc",
  "fe80::1%eth0",
])("the error message cleaner removes %s", (secret) => {
  expect(cleanMessage(`Not possible: ${secret} said no.`)).toBe("Not possible: [removed] said no.");
  expect(cleanMessage(`Bad '${secret}', sorry`)).toBe("Bad '[removed]', sorry");
  expect(cleanMessage(`at ${secret}: refused`)).toMatch(/^at \[removed\]:? refused$/);
});

it.each([
  "Invalid type for 'messages[0].content': expected a string, got 4.1 (max_tokens).",
  "messages: roles must alternate user/assistant, got std::string at line:120",
  "max_tokens:4096 is more than tokens:2048, at most 2147483647 at 12:30:45",
  "max-tokens:4096, limit:16000 and index:1024 are out of range",
  "image/png and application/json are supported, e.g. data:image/png;base64",
  "Extra inputs are not permitted: tools.0.function.parameters",
  "The schema's project, account and organization must be strings :: see properties",
])("the error message cleaner keeps %s", (plain) => {
  expect(cleanMessage(plain)).toBe(plain);
});
