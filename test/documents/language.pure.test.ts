import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findFaults, proseOf, RULES, sentencesOf, textsOf, wordsOf } from "../language-rules.ts";
import type { Rule } from "../language-rules.ts";
import { ROOT } from "./pages.ts";

const FOLDERS = ["src", "scripts", "docs", "test"];
const isWritten = (file: string): boolean =>
  /\.(?:md|tsx?)$/.test(file) && !/node_modules|\.d\.ts$|api\/types\.ts$|fixtures\//.test(file);
const files = FOLDERS.flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" }).map(
    (name) => `${folder}/${name}`,
  ),
);
const texts = [...files, "README.md", "CHANGELOG.md"]
  .filter(isWritten)
  .flatMap((file) => textsOf(file, readFileSync(path.join(ROOT, file), "utf8")));
const sentences = texts.filter(({ kind }) => kind === "sentence").map(({ text }) => text);

/** Share of texts that may break each rule, in percent. Lower a number when you can; never raise one. */
const PERCENT_MAX: Readonly<Record<string, number>> = {
  "name the thing: no clause stands in for a noun": 0.1,
  "start a doc comment with a verb or a noun phrase": 0.5,
  "continue the describe block with a present-tense verb": 0.2,
  "use modern words": 0.45,
  "software does not speak or hear": 0.65,
  "use the field's term in a name": 0.1,
};

describe("the repository's language", () => {
  it.each(RULES)("follows the rule: $name", (rule: Rule) => {
    const { percent, faults } = findFaults(rule, texts);
    const shown = percent <= (PERCENT_MAX[rule.name] ?? 0) ? [] : faults;
    expect(shown).toEqual([]);
  });

  it("uses at most 13 words in an average sentence", () => {
    const lengths = sentences.map((text) => wordsOf(proseOf(text)).length);
    expect(lengths.reduce((sum, length) => sum + length, 0) / lengths.length).toBeLessThan(13);
  });

  it("uses at most 8 semicolons and colons in 100 sentences", () => {
    const marks = sentences.flatMap((text) => proseOf(text).match(/[;:](?=\s)/g) ?? []);
    expect((100 * marks.length) / sentences.length).toBeLessThan(8);
  });
});

it.each([
  ["docs/a.md", "What is sent counts twice here.", "name the thing"],
  ["docs/a.md", "The catalogue lists every model here.", "spell the American way"],
  ["docs/a.md", "The gateway begins anew every hour.", "use modern words"],
  ["docs/a.md", "A key's record tells whose it is.", "software does not speak"],
  ["src/a.ts", "/** Of a key, what is left. */", "start a doc comment"],
  ["src/a.ts", "export type Asked = string;", "use the field's term"],
  ["test/a.test.ts", 'it("of a megabyte and no more", run);', "continue the describe block"],
])("the language rules find the fault in %s: %j", (file, text, name) => {
  const broken = RULES.filter((rule) => findFaults(rule, textsOf(file, text)).faults.length > 0);
  expect(broken.map((rule) => rule.name).join()).toContain(name);
});

it("the language rules find no fault in plain language", () => {
  const text =
    "Retries are safe: reusing a `--reference` adds no credits. Read [what](a.md) first.";
  expect(RULES.filter((rule) => findFaults(rule, textsOf("docs/a.md", text)).percent > 0)).toEqual(
    [],
  );
  expect(sentencesOf(text)).toHaveLength(2);
});
