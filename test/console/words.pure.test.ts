import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const CONSOLE = path.join(import.meta.dirname, "../../console");

/** Words of our own, each with the field's word that stands for it. */
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

it("no title, label or button of the console has a word of our own", () => {
  const files = readdirSync(CONSOLE, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".tsx"),
  );
  expect(files.length).toBeGreaterThan(30);
  const found = files.flatMap((file) => {
    const text = readFileSync(path.join(CONSOLE, file), "utf8");
    return Object.entries(NOT_OURS).flatMap(([word, instead]) => {
      const isSaid = text.includes(`"${word}"`) || new RegExp(`>\\s*${word}\\s*<`).test(text);
      return isSaid ? [`${file}: "${word}" is "${instead}"`] : [];
    });
  });
  expect(found).toEqual([]);
});
