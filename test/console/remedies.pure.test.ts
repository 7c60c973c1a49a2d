import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { REMEDIES, remedyOf } from "../../src/console/browser/lib/remedies.ts";

/** Codes that only a program receives, or whose message says what to do. */
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
