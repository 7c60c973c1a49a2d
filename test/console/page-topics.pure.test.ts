import { expect, it } from "vitest";
import { findTopics } from "../../src/console/browser/lib/page-topics.ts";

it.each([
  ["credits", "invoice", "invoices, receipts and refunds"],
  ["settings", "Stop spending", "stop spending, pause requests"],
  ["settings", "pause", "stop spending, pause requests"],
  ["payments", "refund", "refunds and invoices"],
  ["payments", "invoice", "refunds and invoices"],
  ["credits", "refund", "invoices, receipts and refunds"],
  ["keys", "leaked", "create, rotate or revoke API keys, leaked keys"],
  ["models", "price", "prices and providers"],
  ["end-users", "blocked", "blocked end users"],
  ["organizations", "suspend", "suspend a customer"],
  ["business", "margin", "margin"],
])("the console's search finds the page %s for the text '%s'", (path, words, text) => {
  expect(findTopics(path, words).map(([, topic]) => topic)).toEqual([text]);
});

it("the console's search finds no page for a text that mixes words of two topics", () => {
  expect(findTopics("credits", "invoices balance")).toEqual([]);
});
