import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openApiText } from "../../scripts/openapi.ts";
import { apiPages } from "../../scripts/site/api.ts";
import { readPages } from "../../scripts/site/build.ts";

const CONSOLE = path.join(import.meta.dirname, "../../src/console/browser");

/** Internal terms, each with the standard term for it. */
const NOT_OURS: Readonly<Record<string, string>> = {
  "Begins with": "Prefix",
  Since: "Created",
  Made: "Created",
  "Works in": "Regions",
  Each: "Avg cost",
  "First byte": "TTFT",
  "First words after": "TTFT",
  Took: "Duration",
  "Whole after": "Duration",
  "It took": "Duration",
  In: "Input tokens",
  Out: "Output tokens",
  "Of it reasoning": "Reasoning tokens",
  "Longest answer, in tokens": "Max output tokens",
  charged: "Succeeded",
  "not charged": "Failed",
  "never ended": "Expired",
  "under way": "Running",
  "Given back": "Released",
  Of: "Subject",
  By: "Actor",
  "Their requests": "View requests",
  "Its requests": "View requests",
  "Requests in any 60 s": "Rate limit, per 60 s",
  "Tokens in any 60 s": "Token limit, per 60 s",
  "its whole life": "total",
  "Keep it": "Cancel",
  "Make key": "Create key",
  "Routes that are left alone for a while": "Providers resting",
  "← Back": "← Previous",
  "More →": "Next →",
};

const SOURCES = readdirSync(CONSOLE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".tsx"))
  .map((file) => ({ name: file, text: readFileSync(path.join(CONSOLE, file), "utf8") }));
/** Normalizes a text, so that `Given back` and `given_back` are equal. */
const plain = (text: string): string =>
  text.replaceAll("`", "").replaceAll("_", " ").trim().toLowerCase();
const INSTEAD = new Map(
  Object.entries(NOT_OURS).map(([word, instead]) => [plain(word), instead] as const),
);

/** Parameters whose meaning differs from the internal term's. */
const PARAMETERS = new Set(["since", "by"]);

/** Returns the titles that are internal terms, each with the standard term. */
function ours(titles: readonly string[]): string[] {
  return titles.flatMap((title) => {
    const instead = INSTEAD.get(plain(title));
    return instead === undefined ? [] : [`"${title}" is "${instead}"`];
  });
}

it("titles, labels and buttons of the console contain no internal term", () => {
  expect(SOURCES.length).toBeGreaterThan(30);
  const found = SOURCES.flatMap(({ name, text }) =>
    Object.entries(NOT_OURS).flatMap(([word, instead]) => {
      const isUsed = text.includes(`"${word}"`) || new RegExp(`>\\s*${word}\\s*<`).test(text);
      return isUsed ? [`${name}: "${word}" is "${instead}"`] : [];
    }),
  );
  expect(found).toEqual([]);
});

it("the columns of a CSV export have the names of the API's fields", () => {
  const heads = SOURCES.flatMap(({ text }) =>
    [...text.matchAll(/\[\s*(?:"([^"]+)"|`([^`]+)`),\s*\(/g)].map(
      ([, one, two]) => one ?? two ?? "",
    ),
  );
  expect(heads).toEqual(expect.arrayContaining(["cost_usd", "key_id", "external_id"]));
  expect(heads.filter((head) => !/^(?:\$\{id\}|[a-z])[a-z0-9_]*$/.test(head))).toEqual([]);
  expect(ours(heads)).toEqual([]);
});

it("headings, table headers and fields of docs and API reference contain no internal term", async () => {
  const pages = [...readPages(), ...apiPages(await openApiText())].filter(
    ({ name }) => !name.startsWith("internals/"),
  );
  const found = pages.flatMap(({ name, markdown }) => {
    const text = markdown.replaceAll(/^```(?!fields)[^]*?^```$/gm, "");
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
    const heads = [...text.matchAll(/^\|(.+)\|\n\| *-/gm)].flatMap(([, row = ""]) =>
      row.split("|"),
    );
    const fields = [...text.matchAll(/^([\w[\].$-]+)(?: \(\w+\))? \| /gm)].map(
      ([, field = ""]) => field.split(".").at(-1) ?? "",
    );
    const named = fields.filter((field) => !PARAMETERS.has(field));
    return ours([...headings, ...heads, ...named]).map((one) => `${name}: ${one}`);
  });
  expect(pages.length).toBeGreaterThan(50);
  expect(found).toEqual([]);
});
