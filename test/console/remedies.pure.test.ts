import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { REMEDIES, remedyOf } from "../../src/console/browser/lib/remedies.ts";

/** Codes that only programs receive, or whose message states the remedy. */
const WITHOUT = new Set([
  "invalid_value",
  "context_length_exceeded",
  "content_filter",
  "service_unavailable",
]);

it("the console has a remedy for each documented conflict and limit", () => {
  const docs = readFileSync("docs/errors.md", "utf8");
  const codes = docs.split(/^#+ /m).flatMap((section) => {
    const [heading = "", ...lines] = section.split("\n");
    const isOne = /^(?:402|403|409|429)\b/.test(lines.join("\n").trim());
    return isOne ? [...heading.matchAll(/[a-z_]+/g)].map(([code]) => code) : [];
  });
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((code) => !WITHOUT.has(code) && REMEDIES[code] === undefined)).toEqual([]);
});

it("the console's remedies differ between conflicts", () => {
  const texts = Object.values(REMEDIES).map(([text, action]) => `${text} ${action?.[0] ?? ""}`);
  expect(new Set(texts).size).toBeGreaterThan(0.8 * texts.length);
  expect(remedyOf({ status: 409, code: "last_owner" })).not.toEqual(
    remedyOf({ status: 409, code: "has_balance" }),
  );
});

it.each([
  ["end_user_quota_exceeded", "", "Raise the quota of ann", ["end-users", "ann"]],
  ["paused", "New requests of this end user are paused.", "Resume ann", ["end-users", "ann"]],
  ["paused", "New requests of this API key are paused.", "Resume the key", ["keys", "key_1"]],
  ["key_budget_exceeded", "", "Open the key", ["keys", "key_1"]],
  ["model_not_allowed", "", "Open the key", ["keys", "key_1"]],
])(
  "the remedy for %s (%s) links to '%s', the one object to change",
  (code, message, text, path) => {
    const cause = { status: 403, code, message, keyId: "key_1", externalId: "ann" };
    const [, action] = remedyOf(cause);
    expect(action?.[0]).toBe(text);
    expect(action?.[1][0]).toEqual(path);
  },
);

it("the remedy for a paused organization or member links to all pauses", () => {
  for (const owner of ["this organization", "this API key's member"]) {
    const message = `New requests of ${owner} are paused.`;
    const cause = { status: 403, code: "paused", message, keyId: "key_1", externalId: "ann" };
    expect(remedyOf(cause)[1]?.[1]).toEqual([["settings"]]);
  }
});
