import { expect, it } from "vitest";
import examples from "../../scripts/openapi/examples.json" with { type: "json" };
import { openApiDocument } from "../../scripts/openapi/document.ts";
import { METRICS } from "../../src/events/metrics/series.ts";
import { pagePaths, readPage } from "./pages.ts";

/** Terms of the code that customers and operators don't read. */
const PRIVATE = ["book", "register", "desk", "tombstone", "root", "door", "standing", "shed"];

/** The texts for customers and operators, without code, URLs and command names. */
const READ: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    pagePaths()
      .filter((page) => page !== "src/README.md" && !page.startsWith("docs/internals/"))
      .map((page) => [page, proseOf(readPage(page))]),
  ),
  "the OpenAPI document": textsIn(openApiDocument(examples)).join("\n"),
  "the metrics": Object.values(METRICS)
    .map(({ help }) => help)
    .join("\n"),
};

function proseOf(page: string): string {
  return page.replaceAll(/```[^]*?```|`[^`\n]*`|\]\([^)\n]*\)/g, " ");
}

/** Returns every summary and description. */
function textsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => {
    const isText = typeof one === "string" && (name === "summary" || name === "description");
    return isText ? [proseOf(one)] : textsIn(one);
  });
}

it.each(Object.entries(READ))(
  "the documentation contains no internal term of the code: %s",
  (_, text) => {
    const words = new RegExp(String.raw`\b(?:${PRIVATE.join("|")})(?:s|es)?\b`, "i");
    expect(text.split("\n").filter((line) => words.test(line))).toEqual([]);
  },
);
