import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { errorDocsAnchorOf, errorResponseOf } from "../../src/shared/http/failure-mapping.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { CALLER_CASES } from "../http/failure-cases.ts";
import type { Case, Cases } from "../http/failure-cases.ts";
import { LIMIT_CASES } from "../http/limit-cases.ts";
import { anchorsOf } from "./links.ts";
import { readPage, ROOT } from "./pages.ts";

/** Returns the text below the heading of an error. */
function sectionOf(anchor: string): string {
  const [, rest = ""] = page.split(`\n### \`${anchor}\`\n`);
  return rest.split("\n##")[0]?.trim() ?? "";
}

// TypeScript requires a case for every kind of failure.
const cases: Cases = { ...CALLER_CASES, ...LIMIT_CASES };
const page = readPage("docs/errors.md").replaceAll(/<!-- .*? -->\n\n/g, "");
const anchors = anchorsOf(page);
it.each(Object.entries(cases))("docs/errors.md contains an anchor for %s", (_kind, rows) => {
  for (const [failure] of rows as readonly Case<Failure>[]) {
    expect(anchors).toContain(errorDocsAnchorOf(failure));
    const { status, type } = errorResponseOf(failure);
    const section = sectionOf(errorDocsAnchorOf(failure));
    expect(section).toMatch(new RegExp(`\\b${status}\\b`));
    expect(section).toContain(`type \`${type}\``);
    const row = page.split("\n").find((line) => line.startsWith(`| ${status} `));
    expect(row).toContain(`](#${errorDocsAnchorOf(failure)})`);
  }
});

it("docs/errors.md contains an anchor for every error code", () => {
  const files = readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const sources = files.filter(
    (name) => name.endsWith(".ts") && !name.startsWith("console/browser/"),
  );
  const codes = sources.flatMap((name) => {
    const text = readFileSync(path.join(ROOT, "src", name), "utf8");
    const refusals = text.matchAll(/kind: "(?:conflict|invalid_request)"[^}]*?\bcode: "(\w+)"/g);
    return [...refusals].map(([, code = ""]) => code);
  });
  expect(codes).toContain("last_owner");
  expect(codes.filter((code) => !anchors.has(code))).toEqual([]);
});

it("docs/errors.md shows each error's status and type in the right row", () => {
  const headings = [...page.matchAll(/^### `(\w+)`$/gm)].map(([, anchor = ""]) => anchor);
  const wrong = headings.filter((anchor) => {
    const [, status] = /^(\d{3}), type `\w+`/.exec(sectionOf(anchor)) ?? [];
    const row = page.split("\n").find((line) => line.startsWith(`| ${status} `));
    return row?.includes(`](#${anchor})`) !== true;
  });
  expect(headings.length).toBeGreaterThan(30);
  expect(wrong).toEqual([]);
});
