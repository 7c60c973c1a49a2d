import { expect, it } from "vitest";
import { findTopics } from "../../src/console/browser/lib/page-topics.ts";

it.each([
  ["credits", "invoice", "invoices and receipts"],
  ["settings", "Stop spending", "stop spending, pause requests"],
  ["settings", "pause", "stop spending, pause requests"],
  ["payments", "refund", "refund a purchase"],
])("the console's search finds the page %s for the text '%s'", (path, words, text) => {
  expect(findTopics(path, words).map(([, topic]) => topic)).toEqual([text]);
});

it("the console's search finds no page for a text that mixes words of two topics", () => {
  expect(findTopics("credits", "invoices balance")).toEqual([]);
});
