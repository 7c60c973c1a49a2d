import { expect, it } from "vitest";
import { findTopics } from "../../src/console/browser/lib/page-topics.ts";

it.each([
  ["credits", "invoice", "invoices and receipts"],
  ["settings", "Stop spending", "stop spending, pause requests"],
  ["settings", "pause", "stop spending, pause requests"],
  ["payments", "refund", "refund a purchase"],
])("the search finds the page %s by %s", (path, words, text) => {
  expect(findTopics(path, words).map(([, topic]) => topic)).toEqual([text]);
});

it("the search finds no page by words of two topics", () => {
  expect(findTopics("credits", "invoices balance")).toEqual([]);
});
